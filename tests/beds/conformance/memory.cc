// SPDX-License-Identifier: Apache-2.0
// Registration of memory, and the rights of keys.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

constexpr std::size_t kPage = 4096;

// Pages without a registration.
struct Pages {
  explicit Pages(int protection)
      : at(::mmap(nullptr, kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    must(at != MAP_FAILED, "mmap");
  }
  ~Pages() { ::munmap(at, kPage); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void* at;
};

std::string try_register(Lab& lab, void* at, std::size_t bytes, unsigned access) {
  const Pd pd(::ibv_alloc_pd(lab.a.context.get()));
  const Mr mr(::ibv_reg_mr(pd.get(), at, bytes, access));
  return verdict_of_errno(mr != nullptr);
}

std::string register_with(Lab& lab, unsigned access) {
  const Pages pages(PROT_READ | PROT_WRITE);
  return try_register(lab, pages.at, kPage, access);
}

std::string zero_length(Lab& lab) {
  const Pages pages(PROT_READ | PROT_WRITE);
  return try_register(lab, pages.at, 0, kAllRights);
}

std::string unmapped(Lab& lab) {
  void* hole = nullptr;
  {
    const Pages pages(PROT_READ);
    hole = pages.at;
  }
  return try_register(lab, hole, kPage, kAllRights);
}

std::string read_only_for_writing(Lab& lab) {
  const Pages pages(PROT_READ);
  return try_register(lab, pages.at, kPage, kAllRights);
}

std::string read_only_for_reading(Lab& lab) {
  const Pages pages(PROT_READ);
  return try_register(lab, pages.at, kPage, IBV_ACCESS_REMOTE_READ);
}

std::string wraps_around(Lab& lab) {
  return try_register(lab, reinterpret_cast<void*>(~std::uintptr_t{0} - kPage + 1), 2 * kPage,
                      kAllRights);
}

std::string describes_itself(Lab& lab) {
  const Pd pd(::ibv_alloc_pd(lab.a.context.get()));
  const Pages pages(PROT_READ | PROT_WRITE);
  const Mr mr(::ibv_reg_mr(pd.get(), pages.at, 1000, kAllRights));
  must(mr != nullptr, "ibv_reg_mr");
  return all_of("consistent", {{mr->addr == pages.at, "addr"},
                               {mr->length == 1000, "length"},
                               {mr->pd == pd.get(), "pd"},
                               {mr->context == lab.a.context.get(), "context"}});
}

// A memfd is not a dma-buf, though it can be mapped like one.
std::string memory_file_as_dmabuf(Lab& lab) {
  const Pd pd(::ibv_alloc_pd(lab.a.context.get()));
  const int file = ::memfd_create("no-dmabuf", MFD_CLOEXEC);
  must(file >= 0 && ::ftruncate(file, kPage) == 0, "memfd_create");
  const Mr mr(::ibv_reg_dmabuf_mr(pd.get(), 0, kPage, 0, file, kAllRights));
  std::string verdict = verdict_of_errno(mr != nullptr);
  ::close(file);
  return verdict;
}

// If a device reused a key at once, a late request could access the next region.
std::string key_again(Lab& lab) {
  const Pd pd(::ibv_alloc_pd(lab.a.context.get()));
  const Pages pages(PROT_READ | PROT_WRITE);
  Mr mr(::ibv_reg_mr(pd.get(), pages.at, kPage, kAllRights));
  must(mr != nullptr, "ibv_reg_mr");
  const std::uint32_t old = mr->rkey;
  mr.reset();
  mr.reset(::ibv_reg_mr(pd.get(), pages.at, kPage, kAllRights));
  must(mr != nullptr, "ibv_reg_mr");
  return mr->rkey == old ? "given again" : "another";
}

constexpr std::uint64_t kBase = 0x10000;  // the iova of the region

Mr region_at_base(const End& end) {
  Mr mr(::ibv_reg_mr_iova(end.pd.get(), end.memory.data(), kPage, kBase, kAllRights));
  must(mr != nullptr, "ibv_reg_mr_iova");
  return mr;
}

std::string iova_is_the_address(Lab& lab) {
  Pair pair(lab);
  const Mr mr = region_at_base(pair.b);
  pair.a.memory.fill(0, 100, 1);
  const auto work = Work::write({pair.a.memory.piece(0, 100)}, kBase + 8, mr->rkey);
  const std::string status = run(pair.a, work);
  return pair.b.memory.has_pattern(8, 100, 1) ? status + ", bytes there" : status;
}

std::string iova_replaces_the_address(Lab& lab) {
  Pair pair(lab);
  const Mr mr = region_at_base(pair.b);
  return run(pair.a, Work::write({pair.a.memory.piece(0, 8)}, pair.b.memory.address(), mr->rkey));
}

std::string write_after_dereg(Lab& lab) {
  Pair pair(lab);
  const std::uint32_t rkey = pair.b.memory.rkey();
  must_accept(pair.b.memory.forget(), "ibv_dereg_mr");
  return run(pair.a, Work::write({pair.a.memory.piece(0, 8)}, pair.b.memory.address(), rkey));
}

std::string send_after_dereg(Lab& lab) {
  Pair pair(lab);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_recv");
  const ibv_sge piece = pair.a.memory.piece(0, 8);
  must_accept(pair.a.memory.forget(), "ibv_dereg_mr");
  return run(pair.a, Work::send({piece}));
}

// The statuses at both ends of a SEND whose receive has unusable memory.
std::string both_ends(Pair& pair) {
  const std::string sender = run(pair.a, Work::send({pair.a.memory.piece(0, 8)}));
  return sender + ", receiver " + outcome(pair.b.receives);
}

std::string receive_after_dereg(Lab& lab) {
  Pair pair(lab);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_recv");
  must_accept(pair.b.memory.forget(), "ibv_dereg_mr");
  return both_ends(pair);
}

std::string receive_without_local_write(Lab& lab) {
  PairPlan plan;
  plan.b.memory_rights = IBV_ACCESS_REMOTE_READ;
  Pair pair(lab, plan);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_recv");
  return both_ends(pair);
}

std::string receive_past_end(Lab& lab) {
  Pair pair(lab);
  const std::size_t size = pair.b.memory.size();
  must_accept(post_receive(pair.b, {pair.b.memory.piece(size - 7, 8)}), "ibv_post_recv");
  return both_ends(pair);
}

std::string qp_outlives_region(Lab& lab) {
  Pair pair(lab);
  Region other(pair.b.pd.get(), kPage);
  must_accept(pair.b.memory.forget(), "ibv_dereg_mr");
  return run(pair.a, Work::write({pair.a.memory.piece(0, 8)}, other.address(), other.rkey()));
}

std::string rkey_of_other_pd(Lab& lab) {
  Pair pair(lab);
  const Pd stranger(::ibv_alloc_pd(lab.b.context.get()));
  const Region other(stranger.get(), kPage);
  return run(pair.a, Work::write({pair.a.memory.piece(0, 8)}, other.address(), other.rkey()));
}

std::string lkey_of_other_pd(Lab& lab) {
  Pair pair(lab);
  const Pd stranger(::ibv_alloc_pd(lab.a.context.get()));
  const Region other(stranger.get(), kPage);
  const Region& target = pair.b.memory;
  return run(pair.a, Work::write({other.piece(0, 8)}, target.address(), target.rkey()));
}

std::string rkey_never_given(Lab& lab) {
  Pair pair(lab);
  const Region& target = pair.b.memory;
  const auto piece = pair.a.memory.piece(0, 8);
  return run(pair.a, Work::write({piece}, target.address(), target.rkey() ^ 0x5a5a5a5a));
}

std::string lkey_never_given(Lab& lab) {
  Pair pair(lab);
  ibv_sge piece = pair.a.memory.piece(0, 8);
  piece.lkey ^= 0x5a5a5a5a;
  return run(pair.a, Work::write({piece}, pair.b.memory.address(), pair.b.memory.rkey()));
}

// Two regions of the same memory: the rights are those of the key.
std::string overlapping(Lab& lab, bool with_right) {
  PairPlan plan;
  plan.b.memory_rights = IBV_ACCESS_LOCAL_WRITE;
  Pair pair(lab, plan);
  const Mr open(::ibv_reg_mr(pair.b.pd.get(), pair.b.memory.data(), kPage, kAllRights));
  must(open != nullptr, "ibv_reg_mr");
  const std::uint32_t rkey = with_right ? open->rkey : pair.b.memory.rkey();
  return run(pair.a, Work::write({pair.a.memory.piece(0, 8)}, pair.b.memory.address(), rkey));
}

void add_registering(Catalogue& all) {
  const auto with = [](unsigned access) {
    return [access](Lab& lab) { return register_with(lab, access); };
  };
  const Catalogue ours = {
      {"mr.access.remote_write_alone", "refused EINVAL", with(IBV_ACCESS_REMOTE_WRITE)},
      {"mr.access.remote_atomic_alone", "refused EINVAL", with(IBV_ACCESS_REMOTE_ATOMIC)},
      {"mr.access.remote_read_alone", "accepted", with(IBV_ACCESS_REMOTE_READ)},
      {"mr.access.none", "accepted", with(0)},
      {"mr.access.all", "accepted", with(kAllRights | IBV_ACCESS_REMOTE_ATOMIC)},
      {"mr.access.relaxed_ordering", "accepted", with(kAllRights | IBV_ACCESS_RELAXED_ORDERING)},
      {"mr.access.on_demand", kOpen, with(kAllRights | IBV_ACCESS_ON_DEMAND)},
      {"mr.access.unknown_bit", "refused EINVAL|refused EOPNOTSUPP", with(1 << 15)},
      {"mr.memory.zero_length", kOpen, zero_length},
      {"mr.memory.unmapped", "refused EFAULT", unmapped},
      {"mr.memory.wraps_around", "refused EINVAL|refused EFAULT", wraps_around},
      {"mr.memory.read_only_for_writing", "refused EFAULT", read_only_for_writing},
      {"mr.memory.read_only_for_reading", "accepted", read_only_for_reading},
      {"mr.describes_itself", "consistent", describes_itself},
      {"mr.dmabuf.memory_file", kOpen, memory_file_as_dmabuf},
      {"mr.key.after_dereg", kOpen, key_again},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace

void add_memory(Catalogue& all) {
  add_registering(all);
  const Catalogue ours = {
      {"mr.iova.is_the_address", "SUCCESS, bytes there", iova_is_the_address},
      {"mr.iova.replaces_the_address", "REM_ACCESS_ERR", iova_replaces_the_address},
      {"mr.dereg.then_write", "REM_ACCESS_ERR", write_after_dereg},
      {"mr.dereg.then_send", "LOC_PROT_ERR", send_after_dereg},
      {"mr.dereg.then_receive", "REM_OP_ERR, receiver LOC_PROT_ERR", receive_after_dereg},
      {"mr.dereg.qp_goes_on", "SUCCESS", qp_outlives_region},
      {"mr.receive.no_local_write", "REM_OP_ERR, receiver LOC_PROT_ERR",
       receive_without_local_write},
      {"mr.receive.one_byte_past_end", "REM_OP_ERR, receiver LOC_PROT_ERR", receive_past_end},
      {"mr.rkey.of_other_pd", "REM_ACCESS_ERR", rkey_of_other_pd},
      {"mr.rkey.never_given", "REM_ACCESS_ERR", rkey_never_given},
      {"mr.lkey.of_other_pd", "LOC_PROT_ERR", lkey_of_other_pd},
      {"mr.lkey.never_given", "LOC_PROT_ERR", lkey_never_given},
      {"mr.overlap.key_with_right", "SUCCESS", [](Lab& lab) { return overlapping(lab, true); }},
      {"mr.overlap.key_without_right", "REM_ACCESS_ERR",
       [](Lab& lab) { return overlapping(lab, false); }},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
