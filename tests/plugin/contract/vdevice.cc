// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/contract/vdevice.h"

#include <algorithm>
#include <deque>
#include <numeric>

namespace beeline::test {
namespace {

// Below and above the sizes at which a message is cut, and not multiples of what it is cut at.
const std::vector<size_t> kSizes = {0,       1,       127,     128,       4097,          65'536,
                                    131'071, 131'072, 262'147, 1'000'003, 4'194'304 + 77};
constexpr size_t kUnderWay = 4;

// Asks for everything that NCCL enters into its topology.
void must_have_properties(const Session& session, int first, int end) {
  for (int dev = first; dev < end; ++dev) {
    const Properties found = session.properties(dev);
    BL_MUST(found.name != nullptr && found.members.has_value());
  }
}

// For a merged device, NCCL also looks at its members, by the names that they have.
void must_be_made_of(const Session& session, int dev, const Group& group) {
  const Properties merged = session.properties(dev);
  BL_MUST(merged.members == group);
  for (const int member : *merged.members) {
    BL_MUST(session.properties(member).members == Group{member});
  }
}

// Calls makeVDevice for each group, and checks what NCCL then finds out about the new devices.
std::vector<int> make_devices(const Session& session, int physical,
                              const std::vector<Group>& groups) {
  std::vector<int> made;
  for (const Group& group : groups) {
    int dev = 0;
    BL_MUST_SUCCEED(session.net().make_vdevice(static_cast<int>(group.size()), group, &dev));
    made.push_back(dev);
  }
  // NCCL does not keep `made`: it takes all devices behind the physical ones.
  const int all = session.devices();
  BL_MUST(all - physical == static_cast<int>(groups.size()));
  std::vector<int> behind(groups.size());
  std::iota(behind.begin(), behind.end(), physical);
  BL_MUST(made == behind);
  for (size_t i = 0; i < groups.size(); ++i) must_be_made_of(session, made[i], groups[i]);
  must_have_properties(session, physical, all);
  return made;
}

void send_all_sizes(Sender& end) {
  std::deque<Buffer> buffers;
  std::deque<Request> requests;
  for (size_t i = 0; i < kSizes.size(); ++i) {
    Buffer& buffer = buffers.emplace_back(end, std::max<size_t>(kSizes[i], 1));
    buffer.fill(0, kSizes[i], static_cast<uint32_t>(i));
    requests.push_back(end.send(buffer.part(0, kSizes[i])));
    if (requests.size() < kUnderWay) continue;
    requests.front().finish();
    requests.pop_front();
  }
  for (Request& request : requests) request.finish();
}

void receive_all_sizes(Receiver& end) {
  std::deque<Buffer> buffers;
  std::deque<Request> requests;
  const auto end_oldest = [&] {
    const size_t index = buffers.size() - requests.size();
    requests.front().finish();
    BL_MUST(requests.front().size() == kSizes[index]);
    requests.pop_front();
    buffers[index].must_hold();
  };
  for (size_t i = 0; i < kSizes.size(); ++i) {
    // Larger than the message.
    Buffer& buffer = buffers.emplace_back(end, kSizes[i] + 200);
    buffer.expect(0, kSizes[i], static_cast<uint32_t>(i));
    requests.push_back(end.receive(buffer.all()));
    if (requests.size() >= kUnderWay) end_oldest();
  }
  while (!requests.empty()) end_oldest();
}

}  // namespace

std::vector<Abi> abis_with_vdevices() {
  std::vector<Abi> abis = every_abi();
  std::erase_if(abis, [](Abi abi) { return !has_vdevices(abi); });
  return abis;
}

std::vector<int> merge_as_nccl(const Session& session, const std::vector<Group>& groups) {
  const int physical = session.devices();
  must_have_properties(session, 0, 1);         // asks for its type
  must_have_properties(session, 0, physical);  // enters them into the topology
  must_have_properties(session, 0, physical);  // and finds them there again
  return make_devices(session, physical, groups);
}

std::vector<int> merge_as_nccl_2_24(const Session& session, std::vector<Group> groups) {
  BL_MUST(session.devices() > 0);  // only to know whether there are any
  must_have_properties(session, 0, 1);
  const int physical = session.devices();
  must_have_properties(session, 0, physical);
  must_have_properties(session, 0, physical);
  for (int dev = 0; dev < physical; ++dev) {
    const auto has_it = [&](const Group& group) { return std::ranges::count(group, dev) > 0; };
    if (std::ranges::none_of(groups, has_it)) groups.push_back({dev});
  }
  std::ranges::sort(groups);
  std::vector<int> made = make_devices(session, physical, groups);
  must_have_properties(session, 0, physical);  // takes them out of the topology
  return made;
}

int merged_device(const Session& session, int count) {
  if (count == 1) return 0;
  Group group(static_cast<size_t>(count));
  std::iota(group.begin(), group.end(), 0);
  int dev = 0;
  BL_MUST_SUCCEED(session.net().make_vdevice(count, group, &dev));
  return dev;
}

void must_carry_messages(const Way& way, const ChooseDevice& sender, const ChooseDevice& receiver,
                         const PeerBody& before) {
  run_two(
      way.mode,
      [&](Peer& peer) {
        before(peer);
        const Session session(way.abi);
        Sender end{{peer, session, connect_to_peer(peer, session, sender(peer, session))}};
        send_all_sizes(end);
        peer.meet();
        end.comm.close();
      },
      [&](Peer& peer) {
        before(peer);
        const Session session(way.abi);
        Receiver end{{peer, session, accept_from_peer(peer, session, receiver(peer, session))}};
        receive_all_sizes(end);
        peer.meet();
        end.comm.close();
      });
}

}  // namespace beeline::test
