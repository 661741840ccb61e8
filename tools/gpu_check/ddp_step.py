#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One training step with PyTorch's DistributedDataParallel, on ranks that share GPU 0.

Each rank trains on its share of a batch, and DDP averages the gradients over NCCL. The same step over
the whole batch, in this process alone, gives the gradients that must come out. Everything is float64,
so that rounding is far from what a wrong element would be.

Usage: ddp_step.py --probe    only say which torch and NCCL are here
       ddp_step.py            a rank; torchrun starts it
Exit status: 0 right; 1 gradients differ, or the step failed; 3 there is no usable torch.
"""

import math
import os
import sys

TOLERANCE = 1e-9  # relative to the largest element of a gradient
ROWS_PER_RANK = 16
WIDTH = 512
BUCKET_MIB = 1  # smaller than the model, so that DDP makes several all-reduces
UNUSABLE = 3


def share_of(rank, ranks, rows):
    """The rows of a batch that are a rank's own. Of equal size, or the mean of the means is another."""
    if rows % ranks:
        raise ValueError(f"{rows} rows cannot be shared evenly among {ranks} ranks")
    size = rows // ranks
    return slice(rank * size, (rank + 1) * size)


def difference(got, wanted):
    """The largest difference of two lists of numbers, relative to the largest wanted; inf for NaN."""
    if len(got) != len(wanted):
        return math.inf
    scale = max((abs(number) for number in wanted), default=0) or 1
    largest = 0.0
    for one, other in zip(got, wanted):
        distance = abs(one - other) / scale
        if math.isnan(distance):
            return math.inf
        largest = max(largest, distance)
    return largest


def verdict(differences):
    """(is it right, a sentence) of {name of a parameter: its difference}."""
    if not differences:
        return False, "no gradients came out"
    name = max(differences, key=differences.get)
    if differences[name] > TOLERANCE:
        return False, (f"gradients differ from the single-process ones: {name} by {differences[name]:.3g} "
                       f"of its largest element, where {TOLERANCE:g} is rounding")
    return True, (f"{len(differences)} gradients are those of a single process "
                  f"(largest difference {differences[name]:.2g})")


def find_torch():
    """(torch, what is missing)"""
    try:
        import torch  # pylint: disable=import-outside-toplevel
        import torch.distributed  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        return None, (f"no PyTorch in {sys.executable}: {error}. Install it (pip install torch), or name "
                      "a Python that has it: PYTHON=/path/python3")
    if not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        return None, f"PyTorch {torch.__version__} was built without NCCL; install a build for CUDA"
    if not torch.cuda.is_available():
        return None, f"PyTorch {torch.__version__} sees no GPU; is it built for this driver's CUDA?"
    return torch, None


def make_model(torch):
    """The same in every process: its numbers come from a seed."""
    torch.manual_seed(7)
    layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, WIDTH),
              torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1)]
    return torch.nn.Sequential(*layers).double().cuda()


def step(torch, model, inputs, targets):
    """Gradients of one step, by the name of their parameter."""
    torch.nn.functional.mse_loss(model(inputs), targets).backward()
    torch.cuda.synchronize()
    return {name.removeprefix("module."): parameter.grad.flatten().tolist()
            for name, parameter in model.named_parameters() if parameter.grad is not None}


def compare(torch, rank, ranks):
    torch.manual_seed(11)
    rows = ROWS_PER_RANK * ranks
    inputs = torch.randn(rows, WIDTH, dtype=torch.float64).cuda()
    targets = torch.randn(rows, 1, dtype=torch.float64).cuda()
    wanted = step(torch, make_model(torch), inputs, targets)

    model = make_model(torch)
    if rank:  # DDP has to bring rank 0's parameters here
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(1)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0], bucket_cap_mb=BUCKET_MIB)
    mine = share_of(rank, ranks, rows)
    got = step(torch, model, inputs[mine], targets[mine])
    return verdict({name: difference(got.get(name, []), wanted[name]) for name in wanted})


def run_rank(torch):
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=ranks)
    is_right, sentence = compare(torch, rank, ranks)
    print(f"ddp: rank {rank} of {ranks}: {'right' if is_right else 'WRONG'}: {sentence}", flush=True)
    torch.distributed.destroy_process_group()
    return 0 if is_right else 1


def main(arguments):
    torch, missing = find_torch()
    if missing:
        print(f"ddp: {missing}")
        return UNUSABLE
    if arguments == ["--probe"]:
        version = ".".join(map(str, torch.cuda.nccl.version()))
        print(f"PyTorch {torch.__version__}, NCCL {version}")
        return 0
    return run_rank(torch)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
