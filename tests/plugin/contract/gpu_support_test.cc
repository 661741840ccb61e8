// SPDX-License-Identifier: Apache-2.0
//
// The plugin's GPUDirect support as its properties and its log report it, on machines with and
// without each driver feature. The test of each NIC at init must leave nothing behind.
#include <cctype>
#include <cstdlib>
#include <optional>

#include "tests/plugin/contract/gpu.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

enum class Driver { kGood, kOld, kAbsent };

struct Machine {
  bool dmabuf;
  bool peermem;
  Driver driver;

  // dma-bufs came with CUDA 11.7.
  bool has_dmabuf() const { return dmabuf && driver == Driver::kGood; }
  bool has_peermem() const { return peermem && driver != Driver::kAbsent; }
  bool has_gdr() const { return has_dmabuf() || has_peermem(); }
  std::string settings() const {
    return std::string("driver=") + (driver == Driver::kOld ? "11040" : "13000") +
           ",dmabuf=" + (dmabuf ? "yes" : "no") + ",peermem=" + (peermem ? "yes" : "no");
  }
  // Without peer memory, the plugin exports a dma-buf itself when it is given a pointer.
  int ptr_support() const {
    return NCCL_PTR_HOST | (has_gdr() ? NCCL_PTR_CUDA : 0) | (has_dmabuf() ? NCCL_PTR_DMABUF : 0);
  }
};

std::ostream& operator<<(std::ostream& out, const Machine& machine) {
  return out << (machine.driver == Driver::kAbsent ? "no driver; " : "") << machine.settings();
}

std::vector<Machine> every_machine() {
  std::vector<Machine> all;
  for (const Driver driver : {Driver::kGood, Driver::kOld, Driver::kAbsent}) {
    for (const bool dmabuf : {true, false}) {
      for (const bool peermem : {true, false}) all.push_back({dmabuf, peermem, driver});
    }
  }
  return all;
}

bool has_word(const std::string& text, const std::string& word) {
  const auto is_letter = [&](size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  }
  return false;
}

struct Line {
  ncclDebugLogLevel level;
  std::string text;
};

// The one line that reports GPUDirect between this device and this GPU.
Line line_of(const std::string& device, const std::string& gpu) {
  std::vector<Line> found;
  for (const LogLine& line : log_lines()) {
    if (line.text.find("GPUDirect") == std::string::npos) continue;
    if (!has_word(line.text, device) || line.text.find(gpu) == std::string::npos) continue;
    found.push_back({line.level, line.text});
  }
  if (found.size() != 1) {
    throw MustError(std::to_string(found.size()) + " lines about GPUDirect of " + device + " and " +
                    gpu);
  }
  return found.front();
}

size_t lines_about_gpudirect(std::optional<ncclDebugLogLevel> level = {}) {
  size_t count = 0;
  for (const LogLine& line : log_lines()) {
    if (line.text.find("GPUDirect") != std::string::npos && (!level || line.level == *level)) {
      ++count;
    }
  }
  return count;
}

void must_have_words(const Line& line, const std::vector<std::string>& words,
                     const std::vector<std::string>& not_these) {
  for (const std::string& word : words) {
    if (!has_word(line.text, word)) throw MustError("no \"" + word + "\" in: " + line.text);
  }
  for (const std::string& word : not_these) {
    if (has_word(line.text, word)) throw MustError("\"" + word + "\" in: " + line.text);
  }
}

void must_be_on(const Line& line, const std::vector<std::string>& words,
                const std::vector<std::string>& not_these) {
  BL_MUST(line.level == NCCL_LOG_INFO);
  must_have_words(line, {"on"}, {"off"});
  must_have_words(line, words, not_these);
}

// Checks a warning that must say why both ways fail, and what the user can do.
void must_be_off(const Line& line, const std::string& remedy) {
  BL_MUST(line.level == NCCL_LOG_WARN);
  must_have_words(line, {"off", "dma-buf", "peer memory", remedy}, {"on"});
}

void must_say(const Machine& machine) {
  if (machine.driver == Driver::kAbsent) {
    BL_MUST(lines_about_gpudirect(NCCL_LOG_WARN) == 0);
    return;
  }
  const std::string gpu = fabric_facts().gpus.at(0);
  for (const std::string& device : fabric_facts().devices) {
    const Line line = line_of(device, gpu);
    if (machine.has_dmabuf()) {
      must_be_on(line, {"dma-buf"}, {"peer memory"});
    } else if (machine.has_peermem()) {
      must_be_on(line, {"peer memory"}, {});
    } else {
      must_be_off(line, "nvidia-peermem");
    }
  }
  BL_MUST(lines_about_gpudirect() == 1);  // all NICs of this host are alike
}

void must_have(const Session& session, int ptr_support, int force_flush) {
  BL_MUST(session.devices() == static_cast<int>(fabric_facts().devices.size()));
  for (int dev = 0; dev < session.devices(); ++dev) {
    const Properties properties = session.properties(dev);
    if (properties.ptr_support != ptr_support) {
      throw MustError(std::string(properties.name) + ": ptrSupport is " +
                      std::to_string(properties.ptr_support) + ", not " +
                      std::to_string(ptr_support));
    }
    BL_MUST(properties.force_flush.value_or(force_flush) == force_flush);
  }
}

constexpr int kBoth = NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF;

bool is_active(int gpu) {
  unsigned flags = 0;
  int active = 0;
  CU_MUST(cuda(), kSuccess, cuda().cuDevicePrimaryCtxGetState(gpu, &flags, &active));
  return active != 0;
}

}  // namespace

TEST_CASE("gpu support: properties and log report what works, on every kind of machine",
          "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const Machine machine = GENERATE(from_range(every_machine()));
  CAPTURE(machine);
  const Variable gpu("SOFTGPU", machine.settings().c_str());
  run_alone([&] {
    if (machine.driver != Driver::kAbsent) start_gpu();
    const Session old(Abi::kV8);
    must_have(old, machine.ptr_support(), 0);
    const Session newest(Abi::kV12);
    must_have(newest, machine.ptr_support(), 0);
    must_say(machine);
  });
}

TEST_CASE("gpu support: NCCL is told to flush where the driver does not order writes",
          "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const auto [settings, support, flushes] =
      GENERATE(table<const char*, int, int>({{"ordering=none,compute=8.0", kBoth, 1},
                                             {"ordering=none,compute=9.0", kBoth, 1},
                                             {"ordering=owner", kBoth, 0},
                                             {"ordering=all", kBoth, 0},
                                             {"ordering=none,gdr=no", NCCL_PTR_HOST, 0}}));
  CAPTURE(settings);
  const Variable gpu("SOFTGPU", settings);
  run_alone([support = support, flushes = flushes] {
    start_gpu();
    for (const Abi abi : {Abi::kV8, Abi::kV9, Abi::kV12}) must_have(Session(abi), support, flushes);
  });
}

// GPUDirect works, but NCCL will not use it, and the log has to say so. A topology file may place
// them near each other, whatever sysfs shows, and a coherent GPU has its own link to the processor.
TEST_CASE("gpu support: a NIC too far from the GPU is off, and the log says how to change that",
          "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  struct Row {
    const char* settings;
    const char* topology;
    std::vector<std::string> words;
  };
  const Row row = GENERATE(Row{"", nullptr, {"off", "NODE", "NCCL_NET_GDR_LEVEL"}},
                           Row{"", "/from/the/provider.xml", {"on", "dma-buf"}},
                           Row{"coherent=yes,compute=9.0", nullptr, {"on", "NODE", "dma-buf"}});
  CAPTURE(row.settings, row.topology);
  const Variable level("NCCL_NET_GDR_LEVEL", nullptr);
  const Variable file("NCCL_TOPO_FILE", row.topology);
  const Variable gpu("SOFTGPU", row.settings);
  run_alone([&] {
    start_gpu();
    const Session session;
    must_have(session, kBoth, 0);
    for (const std::string& device : fabric_facts().devices) {
      must_have_words(line_of(device, fabric_facts().gpus.at(0)), row.words, {});
    }
  });
}

// The pages that are registered for it begin before it and end after it.
TEST_CASE("gpu support: it is tested with memory that begins and ends within pages",
          "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const char* const settings = GENERATE("packed=yes", "packed=yes,nic=copies");
  CAPTURE(settings);
  const Variable gpu("SOFTGPU", settings);
  run_alone([&] {
    start_gpu();
    must_have(Session(), kBoth, 0);
    for (const std::string& device : fabric_facts().devices) {
      must_be_on(line_of(device, fabric_facts().gpus.at(0)), {"dma-buf"}, {});
    }
  });
}

TEST_CASE("gpu support: dma-bufs may be turned off", "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const bool peermem = GENERATE(true, false);
  CAPTURE(peermem);
  const Variable gpu("SOFTGPU", peermem ? "peermem=yes" : "peermem=no");
  const Variable wish("NCCL_DMABUF_ENABLE", "0");
  run_alone([&] {
    start_gpu();
    const Session session;
    must_have(session, NCCL_PTR_HOST | (peermem ? NCCL_PTR_CUDA : 0), 0);
    if (peermem) {
      const Link link = link_to_self(session, 0, last_device(session));
      AnyBuffer from(session.net(), link.send, Kind::kPeermem, 1000);
      AnyBuffer to(session.net(), link.recv, Kind::kPeermem, 1000);
      must_carry(session.net(), link, from, to, 1000, 1);
    }
    BL_MUST(cuda().softgpu_calls("cuMemGetHandleForAddressRange") == 0);
  });
}

TEST_CASE("gpu support: all GPUs in use are looked at, and no others",
          "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const int used = GENERATE(1, 2);
  CAPTURE(used);
  run_alone([&] {
    for (int gpu = 0; gpu < used; ++gpu) start_gpu(gpu);
    const Session session;
    for (const std::string& device : fabric_facts().devices) {
      for (int gpu = 0; gpu < used; ++gpu) {
        must_be_on(line_of(device, fabric_facts().gpus.at(static_cast<size_t>(gpu))), {"dma-buf"},
                   {"peer memory"});
      }
    }
    BL_MUST(lines_about_gpudirect() == static_cast<size_t>(used));
    // One allocation serves all NICs.
    BL_MUST(cuda().softgpu_calls("cuMemAlloc") == static_cast<uint64_t>(used));
    BL_MUST(is_active(1) == (used == 2));
  });
}

// The memory of a GPU may be used up, for example where another rank uses it and this process only
// has a stray context there.
TEST_CASE("gpu support: a GPU that cannot be tested is left out",
          "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const std::string full = GENERATE("only", "first", "second");
  CAPTURE(full);
  const Variable gpu("SOFTGPU", full == "second" ? "fail=cuMemAlloc@2:2" : "fail=cuMemAlloc@1:2");
  run_alone([&] {
    start_gpu(0);
    if (full != "only") start_gpu(1);
    must_have(Session(), kBoth, 0);
    const std::string name = fabric_facts().gpus.at(full == "second" ? 1 : 0);
    const std::vector<std::string> warnings = find_log_lines(NCCL_LOG_WARN);
    BL_MUST(warnings.size() == 1);
    BL_MUST(warnings.front().find(name) != std::string::npos);
    BL_MUST(warnings.front().find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos);
    if (full == "only") return;
    const std::string& other = fabric_facts().gpus.at(full == "second" ? 0 : 1);
    for (const std::string& device : fabric_facts().devices) {
      must_be_on(line_of(device, other), {"dma-buf"}, {"peer memory"});
    }
  });
}

// Creating a context takes long, and uses memory that the program may need.
TEST_CASE("gpu support: a GPU that is not in use is queried and gets no context",
          "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const bool dmabuf = GENERATE(true, false);
  CAPTURE(dmabuf);
  const Variable gpu("SOFTGPU", dmabuf ? "peermem=no" : "dmabuf=no,peermem=no");
  run_alone([&] {
    cuda();  // loaded, and not started
    const Session session;
    for (int dev = 0; dev < session.devices(); ++dev) {
      const int support = session.properties(dev).ptr_support;
      BL_MUST(((support & NCCL_PTR_DMABUF) != 0) == dmabuf);
    }
    BL_MUST(!is_active(0) && !is_active(1));
    BL_MUST(cuda().softgpu_calls("cuMemAlloc") == 0);
    BL_MUST(lines_about_gpudirect(NCCL_LOG_WARN) == 0);
  });
}

TEST_CASE("gpu support: the test of GPUDirect leaves nothing behind",
          "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const char* const settings =
      GENERATE("", "dmabuf=no", "peermem=no", "bar1=64K", "ordering=none,compute=9.0");
  CAPTURE(settings);
  const Variable gpu("SOFTGPU", settings);
  const Hiding hiding;
  run_alone([&] {
    auto* const context = cuda().start(0);
    size_t before = 0;
    size_t after = 0;
    CU_MUST(cuda(), kSuccess, cuda().cuMemGetInfo_v2(&before, nullptr));
    const Session session;
    (void)session.properties(0);
    CU_MUST(cuda(), kSuccess, cuda().cuMemGetInfo_v2(&after, nullptr));
    BL_MUST(after == before);
    must_hold_no_gpu_memory();
    decltype(cuda().start(0)) current = nullptr;
    CU_MUST(cuda(), kSuccess, cuda().cuCtxGetCurrent(&current));
    BL_MUST(current == context);
  });
}

// The proof moves data between GPU memory and each NIC.
TEST_CASE("gpu support: the proof may be turned off", "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const char* const proof = GENERATE("0", "1");
  CAPTURE(proof);
  const Variable wish("BEELINE_GDR_PROOF", proof);
  run_alone([&] {
    start_gpu();
    const Session session;
    must_have(session, kBoth, 0);
    const uint64_t copies =
        cuda().softgpu_calls("cuMemcpyHtoDAsync") + cuda().softgpu_calls("cuMemcpyHtoD") +
        cuda().softgpu_calls("cuMemcpyDtoHAsync") + cuda().softgpu_calls("cuMemcpyDtoH");
    BL_MUST((copies != 0) == (*proof == '1'));
    const Link link = link_to_self(session, 0, last_device(session));
    AnyBuffer from(session.net(), link.send, Kind::kDmabuf, 1000);
    AnyBuffer to(session.net(), link.recv, Kind::kPeermem, 1000);
    must_carry(session.net(), link, from, to, 1000, 1);
  });
}

// A NIC that corrupts data in GPU memory is worse than one that cannot reach it.
TEST_CASE("gpu support: a NIC that fails the proof is not offered",
          "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const std::string device = fabric_facts().devices.front();
  const UndoneFaults undone("h0/" + device);
  const Variable gpu("SOFTGPU", "peermem=no");  // so that there is no fallback
  // The first transfer is the NIC's loopback, the second reads from the GPU, the third writes
  // there.
  const char* const which = GENERATE("corrupt@1", "corrupt@2", "corrupt@3");
  CAPTURE(which);
  disturb("h0/" + device, which);
  run_alone([&] {
    start_gpu();
    const Session session;
    const Line line = line_of(device, fabric_facts().gpus.at(0));
    BL_MUST(line.level == NCCL_LOG_WARN && has_word(line.text, "off"));
    for (int dev = 0; dev < session.devices(); ++dev) {
      const Properties properties = session.properties(dev);
      const bool failed = properties.name == "beeline_" + device;
      BL_MUST(properties.ptr_support == (failed ? int{NCCL_PTR_HOST} : kBoth));
    }
  });
}

// A broken loopback is no fault of the GPU or of the PCIe path between the two.
TEST_CASE("gpu support: a NIC that does not reach itself is offered where nothing needs that",
          "[contract][gpu][gpu_support][softnic]") {
  if (!kProcessesWork) return;
  const std::string device = fabric_facts().devices.front();
  const UndoneFaults undone("h0/" + device);
  const auto [fault, word] = GENERATE(table<std::string, std::string>(
      {{"pkey=0x0001", "partition"},
       {"error=rem_op_err@1", "the NIC's loopback connection does not work"}}));
  const bool needs_reads = GENERATE(false, true);
  CAPTURE(fault, needs_reads);
  const Variable gpu("SOFTGPU",
                     needs_reads ? "ordering=none,flush=none" : "ordering=none,flush=host");
  disturb("h0/" + device, fault);
  run_alone([&, word = word] {
    start_gpu();
    const Session session;
    const Line line = line_of(device, fabric_facts().gpus.at(0));
    BL_MUST(line.text.find(word) != std::string::npos);
    must_have_words(line, {needs_reads ? "off" : "on"}, {"ACS", needs_reads ? "on" : "off"});
    for (int dev = 0; dev < session.devices(); ++dev) {
      const Properties properties = session.properties(dev);
      const bool is_out = needs_reads && properties.name == "beeline_" + device;
      BL_MUST(properties.ptr_support == (is_out ? int{NCCL_PTR_HOST} : kBoth));
    }
  });
}
