// SPDX-License-Identifier: Apache-2.0
// The commands of `softnic ctl`: parsing, finding the port, and their effect on it.
#include "softnic/fabric/port_command.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "common/base/fd.h"
#include "softnic/fabric/events.h"
#include "softnic/spec/spec_toml.h"
#include "tests/beds/softnic/port_words.h"
#include "tests/support/catch.h"

namespace {

using softnic::Fabric;
using softnic::Holder;
using softnic::PortCommand;
using softnic::PortRecord;
using softnic::PortRef;
using Kind = PortCommand::Kind;
using softnic::test::complaint;
using softnic::test::must_parse;

// A fabric of its own for each test: h0 with a shaped and a two-port device, h1 with one like h0's.
class OwnFabric {
 public:
  OwnFabric() : name_("port-command-test-" + std::to_string(getpid())), holder_(hold(name_)) {}

  const Fabric& fabric() const { return holder_.fabric(); }
  PortRecord& port(PortRef ref) const {
    return fabric().header().devices[ref.device].ports[ref.port];
  }
  PortRef find(const std::string& text) const {
    const auto found = softnic::find_port(fabric(), text);
    if (!found) FAIL(found.error().text);
    return *found;
  }
  std::string search_error(const std::string& text) const {
    const auto found = softnic::find_port(fabric(), text);
    return found ? "(found)" : found.error().text;
  }
  void apply(PortRef ref, const std::string& text) const {
    softnic::apply(fabric(), ref, must_parse(text));
  }
  std::string sysfs(const std::string& path) const {
    std::ifstream file(fabric().sysfs_root("h0") + "/" + path);
    std::string line;
    std::getline(file, line);
    return line;
  }
  const std::string& name() const { return name_; }

 private:
  static Holder hold(const std::string& name) {
    auto spec = softnic::parse_fabric(R"(
      [[host]]
      name = "h0"
      [[host.device]]
      name = "nic0"
      rate = "100M"
      latency = "5us"
      [[host.device]]
      name = "dual"
      ports = [{}, {}]
      [[host]]
      name = "h1"
      [[host.device]]
      name = "nic0"
    )",
                                      "own.toml");
    if (!spec) FAIL(spec.error().text);
    auto holder = Holder::hold(name, &*spec);
    if (!holder) FAIL(holder.error().text);
    return *std::move(holder);
  }

  std::string name_;
  Holder holder_;
};

// Stands in for an open device: reads the events that arrive at its FIFO.
class EventEar {
 public:
  EventEar(const Fabric& fabric, std::uint32_t device)
      : path_(fabric.dir() + "/" + softnic::event_pipe_name({device, 0, 0})) {
    REQUIRE(mkfifo(path_.c_str(), 0600) == 0);
    fd_.reset(open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  }
  ~EventEar() { unlink(path_.c_str()); }

  // The type of the next event, or -1.
  int next(std::uint32_t port_number) {
    softnic::EventRecord event;
    if (read(fd_.get(), &event, sizeof event) != sizeof event) return -1;
    CHECK(event.element == port_number);
    return event.type;
  }

 private:
  std::string path_;
  beeline::UniqueFd fd_;
};

}  // namespace

TEST_CASE("port_command: every command is parsed", "[unit]") {
  CHECK(must_parse("down").kind == Kind::kDown);
  CHECK(must_parse("up").kind == Kind::kUp);
  CHECK(must_parse("reset").kind == Kind::kReset);
  CHECK(must_parse("rate=200M").kind == Kind::kRate);
  CHECK(must_parse("rate=200M").value == 200'000'000);
  CHECK(must_parse("rate=1.5G").value == 1'500'000'000);
  CHECK(must_parse("rate=64k").value == 64'000);
  CHECK(must_parse("rate=max").value == 0);
  CHECK(must_parse("latency=50us").kind == Kind::kLatency);
  CHECK(must_parse("latency=50us").value == 50'000);
  CHECK(must_parse("latency=2ms").value == 2'000'000);
  CHECK(must_parse("latency=0").value == 0);
  CHECK(must_parse("corrupt@7").kind == Kind::kCorrupt);
  CHECK(must_parse("corrupt@7").value == 7);
  CHECK(must_parse("discard=64@7").kind == Kind::kDiscard);
  CHECK(must_parse("discard=64@7").bytes == 64);
  CHECK(must_parse("discard=64@7").value == 7);
}

TEST_CASE("port_command: an error status is known in any case and with its prefix", "[unit]") {
  for (const char* text :
       {"error=retry_exc_err@3", "error=RETRY_EXC_ERR@3", "error=IBV_WC_RETRY_EXC_ERR@3"}) {
    const PortCommand command = must_parse(text);
    CHECK(command.kind == Kind::kError);
    CHECK(command.status == IBV_WC_RETRY_EXC_ERR);
    CHECK(command.value == 3);
  }
}

TEST_CASE("port_command: an unknown command is reported with the nearest one, or all", "[unit]") {
  CHECK(complaint("dwon") == "unknown command \"dwon\"; did you mean down?");
  CHECK(complaint("rat=5M") == "unknown command \"rat=5M\"; did you mean rate=RATE?");
  CHECK(complaint("corrupt") == "unknown command \"corrupt\"; did you mean corrupt@N?");
  CHECK(complaint("explode") ==
        "unknown command \"explode\"; the commands are down, up, rate=RATE, latency=TIME, "
        "jitter=TIME, "
        "loss=SHARE, loss-sent=SHARE, loss-over=BYTES, blackhole, pause, pause=TIME, resume, "
        "error=STATUS@N, corrupt@N, "
        "discard=BYTES@N, gid=INDEX:ADDRESS, "
        "pkey=PKEY, lid=LID, event=NAME, reset, remove, return, refuse-err=on|off, "
        "refuse-gpu=on|off, "
        "hide-events=on|off and command=TIME");
  CHECK(complaint("error=retry_exc@1") ==
        "\"retry_exc\" is not an error status; did you mean retry_exc_err?");
  CHECK(complaint("error=retry_exc_err") ==
        "\"error=retry_exc_err\" lacks @N: write for example error=retry_exc_err@1");
  CHECK_THAT(complaint("error=success@1"), Catch::StartsWith("\"success\" is not an error status"));
  CHECK_THAT(complaint("corrupt@0"), Catch::StartsWith("\"0\" is not a count"));
  CHECK_THAT(complaint("corrupt@-1"), Catch::StartsWith("\"-1\" is not a count"));
  CHECK(complaint("discard=64") == "\"discard=64\" lacks @N: write for example discard=64@1");
  CHECK_THAT(complaint("discard=64@0"), Catch::StartsWith("\"0\" is not a count"));
  CHECK_THAT(complaint("discard=0@1"), Catch::StartsWith("\"0\" is not a length"));
  CHECK_THAT(complaint("discard=64k@1"), Catch::StartsWith("\"64k\" is not a length"));
  CHECK_THAT(complaint("rate="), Catch::StartsWith("\"\" is not a rate"));
  CHECK_THAT(complaint("latency=50"), Catch::StartsWith("\"50\" is not a time"));
}

TEST_CASE("port_command: a port is found by device, host and number", "[unit]") {
  const OwnFabric own;
  CHECK(own.find("dual").device == 1);
  CHECK(own.find("dual").port == 0);
  CHECK(own.find("dual:2").port == 1);
  CHECK(own.find("h0/nic0").device == 0);
  CHECK(own.find("h1/nic0:1").device == 2);
}

TEST_CASE("port_command: an unknown port is reported with the known ones", "[unit]") {
  const OwnFabric own;
  CHECK(own.search_error("nic0") == "nic0 is on h0 and h1: name the host, for example h0/nic0");
  CHECK(own.search_error("nic7") == "no device \"nic7\" on any host of fabric " + own.name() +
                                        "; the devices are nic0 and dual");
  CHECK(own.search_error("h1/dual") == "no device \"dual\" on host h1; the devices are nic0");
  CHECK(own.search_error("h9/nic0") ==
        "no host \"h9\" in fabric " + own.name() + "; its hosts are h0 and h1");
  CHECK(own.search_error("h0/nic0:2") == "no port \"2\" on nic0; it has port 1 only");
  CHECK(own.search_error("dual:0") == "no port \"0\" on dual; it has ports 1 and 2");
}

TEST_CASE("port_command: down and up reach the record, sysfs and every open device once",
          "[unit]") {
  const OwnFabric own;
  const PortRef ref = own.find("dual:2");
  EventEar ear(own.fabric(), ref.device);
  const std::uint32_t generation = own.fabric().header().generation.load();

  own.apply(ref, "down");
  CHECK(own.port(ref).faults.load() == softnic::kFaultDown);
  CHECK(own.fabric().header().generation.load() == generation + 1);
  CHECK(own.sysfs("class/infiniband/dual/ports/2/state") == "1: DOWN");
  CHECK(own.sysfs("class/infiniband/dual/ports/1/state") == "4: ACTIVE");
  CHECK(ear.next(2) == IBV_EVENT_PORT_ERR);

  own.apply(ref, "down");
  CHECK(ear.next(2) == -1);

  own.apply(ref, "up");
  CHECK(own.port(ref).faults.load() == 0);
  CHECK(own.sysfs("class/infiniband/dual/ports/2/state") == "4: ACTIVE");
  CHECK(ear.next(2) == IBV_EVENT_PORT_ACTIVE);

  own.apply(ref, "up");
  CHECK(ear.next(2) == -1);
}

TEST_CASE("port_command: rate and latency shape the port until both are gone", "[unit]") {
  const OwnFabric own;
  const PortRef ref = own.find("h1/nic0");
  own.apply(ref, "rate=200M");
  CHECK(own.port(ref).rate_bytes_s.load() == 200'000'000);
  CHECK(own.port(ref).faults.load() == softnic::kFaultShaped);
  own.apply(ref, "latency=5us");
  own.apply(ref, "rate=max");
  CHECK(own.port(ref).latency_ns.load() == 5'000);
  CHECK(own.port(ref).faults.load() == softnic::kFaultShaped);
  own.apply(ref, "latency=0");
  CHECK(own.port(ref).faults.load() == 0);
}

TEST_CASE("port_command: armed faults are in the record", "[unit]") {
  const OwnFabric own;
  const PortRef ref = own.find("dual");
  own.apply(ref, "error=rem_access_err@4");
  own.apply(ref, "corrupt@9");
  own.apply(ref, "discard=64@3");
  CHECK(own.port(ref).faults.load() ==
        (softnic::kFaultError | softnic::kFaultCorrupt | softnic::kFaultDiscard));
  CHECK(own.port(ref).error_countdown.load() == 4);
  CHECK(own.port(ref).error_status.load() == IBV_WC_REM_ACCESS_ERR);
  CHECK(own.port(ref).corrupt_countdown.load() == 9);
  CHECK(own.port(ref).discard_countdown.load() == 3);
  CHECK(own.port(ref).discard_bytes.load() == 64);
}

TEST_CASE("port_command: reset restores the fabric file and ends all faults", "[unit]") {
  const OwnFabric own;
  const PortRef ref = own.find("h0/nic0");
  EventEar ear(own.fabric(), ref.device);
  for (const char* command :
       {"down", "rate=max", "latency=0", "error=fatal_err@1", "corrupt@1", "discard=64@1"})
    own.apply(ref, command);
  own.apply(ref, "reset");
  CHECK(own.port(ref).rate_bytes_s.load() == 100'000'000);
  CHECK(own.port(ref).latency_ns.load() == 5'000);
  CHECK(own.port(ref).faults.load() == softnic::kFaultShaped);
  CHECK(own.port(ref).error_countdown.load() == 0);
  CHECK(own.port(ref).corrupt_countdown.load() == 0);
  CHECK(own.port(ref).discard_countdown.load() == 0);
  CHECK(own.sysfs("class/infiniband/nic0/ports/1/state") == "4: ACTIVE");
  CHECK(ear.next(1) == IBV_EVENT_PORT_ERR);
  CHECK(ear.next(1) == IBV_EVENT_PORT_ACTIVE);
  CHECK(ear.next(1) == -1);
}
