// SPDX-License-Identifier: Apache-2.0
//
// init, devices, getProperties, finalize: the calls that NCCL makes before it connects.
#include <filesystem>
#include <regex>
#include <set>

#include "tests/plugin/contract/plugin_log.h"
#include "tests/plugin/contract/session.h"
#include "tests/plugin/contract/world.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

void must_be_pci_function(const char* text) {
  BL_MUST(text != nullptr);
  const std::filesystem::path path = text;
  static const std::regex kBdf("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");
  BL_MUST(path.is_absolute() && std::filesystem::is_directory(path));
  BL_MUST(std::filesystem::canonical(path) == path);
  BL_MUST(std::regex_match(path.filename().string(), kBdf));
  BL_MUST(std::filesystem::read_symlink(path / "subsystem").filename() == "pci");
}

std::string word(const char* text) { return text == nullptr ? "none" : text; }

template <class T>
bool is_between(const std::optional<T>& value, T low, T high) {
  return !value || (low <= *value && *value <= high);
}

Properties filled(Net& net, int dev, uint8_t fill) {
  Properties found{};
  BL_MUST_SUCCEED(net.properties(dev, fill, &found));
  return found;
}

}  // namespace

TEST_CASE("device: every RDMA device appears once, under a name of the plugin",
          "[contract][device]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    const std::vector<std::string>& real = fabric_facts().devices;
    BL_MUST(session.devices() == static_cast<int>(real.size()));
    BL_MUST(session.devices() < 128);  // the size of NCCL's own arrays
    std::set<std::string> names;
    std::set<std::pair<uint64_t, int>> wires;
    for (int dev = 0; dev < session.devices(); ++dev) {
      const Properties found = session.properties(dev);
      names.insert(found.name);
      wires.emplace(found.guid, found.port);
    }
    for (const std::string& name : real) BL_MUST(names.contains("beeline_" + name));
    BL_MUST(wires.size() == real.size());
  });
}

TEST_CASE("device: getProperties writes every field", "[contract][device]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    for (int dev = 0; dev < session.devices(); ++dev) {
      const Properties one = filled(session.net(), dev, 0xA5);
      BL_MUST(one == filled(session.net(), dev, 0x5A));
      BL_MUST(one == filled(session.net(), dev, 0));
    }
  });
}

TEST_CASE("device: properties are in the range that NCCL can work with", "[contract][device]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    for (int dev = 0; dev < session.devices(); ++dev) {
      const Properties found = session.properties(dev);
      // NCCL allows a device without a path.
      if (found.pci_path != nullptr || fabric_facts().has_pci_paths) {
        must_be_pci_function(found.pci_path);
      }
      BL_MUST(found.guid != 0 && found.port >= 1);
      BL_MUST((found.ptr_support & NCCL_PTR_HOST) != 0);
      BL_MUST((found.ptr_support & ~(NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF)) == 0);
      BL_MUST(found.speed > 0);
      BL_MUST(found.speed == fabric_facts().speed_mbits.value_or(found.speed));
      BL_MUST(found.latency >= 0.0F && found.latency < 1000.0F);
      BL_MUST(found.max_comms > 0);
      BL_MUST(found.max_recvs == 8);
      BL_MUST(is_between(found.reg_is_global, 0, 1));
      BL_MUST(is_between(found.force_flush, 0, 1));
      BL_MUST(is_between<int>(found.device_type, NCCL_NET_DEVICE_HOST, NCCL_NET_DEVICE_HOST));
      BL_MUST(!found.members || found.members == std::vector<int>{dev});
      BL_MUST(is_between<size_t>(found.max_p2p_bytes, 1, NCCL_MAX_NET_SIZE_BYTES));
      BL_MUST(is_between<size_t>(found.max_coll_bytes, 1, NCCL_MAX_NET_SIZE_BYTES));
      BL_MUST(is_between<int>(found.rail, NCCL_NET_ID_UNDEF, NCCL_NET_ID_UNDEF));
      BL_MUST(is_between<int>(found.plane, NCCL_NET_ID_UNDEF, NCCL_NET_ID_UNDEF));
    }
  });
}

TEST_CASE("device: a device that is not there is an error, not a crash", "[contract][device]") {
  const Abi abi = GENERATE(from_range(some_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    Net& net = session.net();
    Handle handle{};
    const Comm listener = listen(session, 0, &handle);
    for (const int wrong : {-1, session.devices(), 127, 128, 1 << 20, INT32_MAX, INT32_MIN}) {
      Properties found{};
      BL_MUST(net.properties(wrong, 0, &found) != ncclSuccess);
      Handle other{};
      void* comm = nullptr;
      BL_MUST(net.listen(session.context(), wrong, other.bytes.data(), &comm) != ncclSuccess);
      BL_MUST(comm == nullptr);
      BL_MUST(net.connect(session.context(), wrong, handle.bytes.data(), &comm, nullptr) !=
              ncclSuccess);
      BL_MUST(comm == nullptr);
    }
  });
}

TEST_CASE("device: names and paths stay where they are", "[contract][device]") {
  run_alone([&] {
    std::vector<Properties> before;
    std::vector<std::string> words;
    {
      const Session session;
      for (int dev = 0; dev < session.devices(); ++dev) {
        before.push_back(session.properties(dev));
        words.insert(words.end(), {before.back().name, word(before.back().pci_path)});
        link_to_self(session, dev, dev);
      }
    }
    const Session again;
    for (size_t dev = 0; dev < before.size(); ++dev) {
      BL_MUST(words[2 * dev] == before[dev].name);
      BL_MUST(words[2 * dev + 1] == word(before[dev].pci_path));
      BL_MUST(words[2 * dev] == again.properties(static_cast<int>(dev)).name);
    }
  });
}

TEST_CASE("device: init may come again, before and after the end of another",
          "[contract][device]") {
  run_alone([&] {
    const std::unique_ptr<Net> net = Net::load(kNewest);
    BL_MUST_SUCCEED(net->finalize(nullptr));  // as after an init that failed
    void* first = nullptr;
    void* second = nullptr;
    BL_MUST_SUCCEED(net->init(&first, nullptr, &keep_log_line));
    BL_MUST_SUCCEED(net->init(&second, nullptr, &keep_log_line));
    BL_MUST_SUCCEED(net->finalize(first));
    const Session session;
    link_to_self(session);
    BL_MUST_SUCCEED(net->finalize(second));
    link_to_self(session);
    BL_MUST(session.devices() == 2);
  });
}

TEST_CASE("device: init works without a logger, configuration or profiler", "[contract][device]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_alone([&] {
    const std::unique_ptr<Net> net = Net::load(abi);
    void* context = nullptr;
    BL_MUST_SUCCEED(net->init(&context, nullptr, nullptr));
    // An error that the plugin would log if there were a logger.
    Handle nonsense{};
    void* comm = nullptr;
    while (net->connect(context, 0, nonsense.bytes.data(), &comm, nullptr) == ncclSuccess) {
      BL_MUST(comm == nullptr);
    }
    BL_MUST_SUCCEED(net->finalize(context));
  });
}

TEST_CASE(
    "device: the tables have every required function, and no optional one that would cost time",
    "[contract][device]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_alone([&] {
    const Slots slots = Net::load(abi)->slots();
    BL_MUST(slots.all_required);
    BL_MUST(slots.finalize.value_or(true));
    BL_MUST(slots.make_vdevice.value_or(true));
    BL_MUST(!slots.irecv_consumed.value_or(false));
    BL_MUST(!slots.get_device_mr.value_or(false));
  });
}

TEST_CASE("device: the plugin has one name in all tables, without spaces", "[contract][device]") {
  const std::vector<Abi> abis = every_abi();
  run_alone([&] {
    const std::string name = Net::load(Abi::kV12)->name();
    BL_MUST(!name.empty() && name.find_first_of(" \t,") == std::string::npos);
    for (const Abi abi : abis) BL_MUST(Net::load(abi)->name() == name);
  });
}

TEST_CASE("device: setNetAttr may be called at any time", "[contract][device]") {
  run_alone([] {
    const Session session(Abi::kV12);
    ncclNetAttr_t attributes{};
    attributes.sendCommAttr = {NCCL_NET_ATTR_UNDEF, NCCL_NET_ATTR_UNDEF, 8, 1};
    (void)session.net().set_net_attr(session.context(), &attributes);
    link_to_self(session);
    (void)session.net().set_net_attr(session.context(), &attributes);
  });
}
