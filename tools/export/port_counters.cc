// SPDX-License-Identifier: Apache-2.0
#include "tools/export/port_counters.h"

#include <charconv>
#include <string_view>
#include <system_error>

namespace beeline::exporter {
namespace {

// In the order of mlx5, bnxt_re (both names, where they were changed), irdma, efa, ionic, rxe,
// mana.
constexpr PortCounter kPortCounters[] = {
    {"beeline_port_sent_bytes_total",
     "Bytes that the port has sent, of all programs.",
     {"counters/port_xmit_data", "hw_counters/tx_bytes", "hw_counters/tx_rdma_ucast_bytes"}},
    {"beeline_port_received_bytes_total",
     "Bytes that the port has received, of all programs.",
     {"counters/port_rcv_data", "hw_counters/rx_bytes", "hw_counters/rx_rdma_ucast_bytes"}},
    {"beeline_port_retransmissions_total",
     "Packets that this NIC has sent again, as far as its driver counts them.",
     {"hw_counters/roce_adp_retrans", "hw_counters/to_retransmits", "hw_counters/tcpRetransSegs",
      "hw_counters/retrans_pkts", "hw_counters/tx_rdma_retx_pkts"}},
    {"beeline_port_sequence_naks_total",
     "Times that the other end has missed a packet of this NIC: packets to it were lost.",
     {"hw_counters/packet_seq_err", "hw_counters/seq_err_naks_rcvd",
      "hw_counters/req_rx_pkt_seq_err", "hw_counters/rcvd_seq_err",
      "hw_counters/requester_oos_nak"}},
    {"beeline_port_out_of_order_total",
     "Packets that arrived out of order, or after others that are missing.",
     {"hw_counters/out_of_sequence", "hw_counters/oos_drop_count", "hw_counters/resp_rx_outouf_seq",
      "hw_counters/out_of_seq_request", "hw_counters/responder_oos"}},
    {"beeline_port_duplicates_total",
     "Packets that arrived a second time: their acknowledgment was lost or late.",
     {"hw_counters/duplicate_request", "hw_counters/dup_req", "hw_counters/resp_rx_dup_request",
      "hw_counters/responder_dup_request"}},
    {"beeline_port_ack_timeouts_total",
     "Times that no acknowledgment came in time.",
     {"hw_counters/local_ack_timeout_err", "hw_counters/to_retransmits",
      "hw_counters/retrans_timeout_events", "hw_counters/tx_rdma_ack_timeout",
      "hw_counters/completer_retry_err", "hw_counters/requester_timeout"}},
    {"beeline_port_retry_exhausted_total",
     "Times that a NIC has given up a queue pair because nothing was acknowledged.",
     {"hw_counters/req_transport_retries_exceeded", "hw_counters/max_retry_exceeded",
      "hw_counters/unresponsive_remote_events", "hw_counters/req_tx_retry_excd_err",
      "hw_counters/retry_exceeded_err", "hw_counters/requester_retries_exceeded"}},
    {"beeline_port_rnr_total",
     "Times that the other end had posted no receive for a message.",
     {"hw_counters/rnr_nak_retry_err", "hw_counters/rnr_naks_rcvd",
      "hw_counters/req_rx_rnr_retry_err", "hw_counters/rcvd_rnr_err",
      "hw_counters/requester_rnr_nak"}},
    {"beeline_port_no_buffer_total",
     "Packets that were dropped because no receive was posted for them here.",
     {"hw_counters/out_of_buffer", "hw_counters/rx_out_of_buffer", "hw_counters/rx_drops",
      "hw_counters/resp_rx_outof_buf"}},
    {"beeline_port_ecn_marked_total",
     "Packets that arrived with the mark of a congested switch.",
     {"hw_counters/np_ecn_marked_roce_packets", "hw_counters/rx_ecn_marked_pkts",
      "hw_counters/RxECNMrkd", "hw_counters/rx_rdma_ecn_pkts", "hw_counters/received_ecns"}},
    {"beeline_port_cnp_sent_total",
     "Times that this NIC has told a sender to slow down.",
     {"hw_counters/np_cnp_sent", "hw_counters/np_cnp_pkts", "hw_counters/tx_cnp_pkts",
      "hw_counters/cnpSent", "hw_counters/tx_rdma_cnp_pkts", "hw_counters/sent_cnps"}},
    {"beeline_port_cnp_received_total",
     "Times that this NIC was told to slow down.",
     {"hw_counters/rp_cnp_handled", "hw_counters/rx_cnp_pkts", "hw_counters/cnpHandled",
      "hw_counters/rx_rdma_cnp_pkts", "hw_counters/received_cnps"}},
    {"beeline_port_cnp_ignored_total",
     "Times that this NIC was told to slow down and did not, because congestion control is off.",
     {"hw_counters/rp_cnp_ignored", "hw_counters/cnpIgnored"}},
    {"beeline_port_remote_access_errors_total",
     "Accesses to the memory of another host that were refused.",
     {"hw_counters/req_remote_access_errors", "hw_counters/remote_access_err",
      "hw_counters/rdma_write_wr_err", "hw_counters/req_rx_rmt_acc_err"}},
    {"beeline_port_completion_errors_total",
     "Work requests of this NIC that have ended with an error.",
     {"hw_counters/req_cqe_error", "hw_counters/unrecoverable_err", "hw_counters/req_rx_cqe_err"}},
    {"beeline_port_bad_checksums_total",
     "RoCE packets with a wrong checksum.",
     {"hw_counters/rx_icrc_encapsulated", "hw_counters/rx_roce_errors"}},
    {"beeline_port_transmit_wait_ticks_total",
     "Ticks of the port in which it had data and no credit of the switch to send it.",
     {"counters/port_xmit_wait"}},
    {"beeline_port_transmit_discards_total",
     "Packets that the port has discarded instead of sending them.",
     {"counters/port_xmit_discards"}},
    {"beeline_port_receive_errors_total",
     "Packets that arrived damaged.",
     {"counters/port_rcv_errors"}},
    {"beeline_port_symbol_errors_total",
     "Errors on the wire below packets.",
     {"counters/symbol_error"}},
    {"beeline_port_link_recoveries_total",
     "Times that the link had to train anew, and recovered.",
     {"counters/link_error_recovery"}},
    {"beeline_port_link_downs_total", "Times that the link went down.", {"counters/link_downed"}},
};

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// "100 Gb/sec (4X EDR)" in bytes per second.
std::optional<double> rate_in(std::string_view text) {
  double gigabits = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), gigabits);
  const std::string_view rest(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
  if (error != std::errc() || !rest.starts_with(" Gb/sec")) return std::nullopt;
  return gigabits * 1e9 / 8;
}

// InfiniBand's own counters of bytes are in words of four.
std::uint64_t unit_of(std::string_view file) { return file.ends_with("_data") ? 4 : 1; }

std::optional<std::uint64_t> value_of(const checks::Tree& tree, const std::string& folder,
                                      const PortCounter& counter) {
  for (const char* const file : counter.files) {
    if (file == nullptr) break;
    if (const auto value = whole_number(tree.line(checks::below(folder, file)))) {
      return *value * unit_of(file);
    }
  }
  return std::nullopt;
}

PortReading read_port(const checks::Tree& tree, const std::string& folder, std::string name) {
  PortReading reading = {.device = std::move(name)};
  reading.is_up = tree.line(folder + "/state").starts_with("4:");  // IB_PORT_ACTIVE
  reading.rate = rate_in(tree.line(folder + "/rate"));
  for (const PortCounter& counter : kPortCounters) {
    if (const auto value = value_of(tree, folder, counter)) reading.values[&counter] = *value;
  }
  return reading;
}

}  // namespace

std::span<const PortCounter> port_counters() { return kPortCounters; }

std::vector<PortReading> read_ports(const checks::Tree& tree, const std::set<std::string>& wanted) {
  std::vector<PortReading> ports;
  const std::string devices = "/sys/class/infiniband";
  for (const std::string& device : tree.names(devices)) {
    const std::string folder = checks::below(checks::below(devices, device), "ports");
    for (const std::string& port : tree.names(folder)) {
      std::string name = device;
      name += ':';
      name += port;
      if (!wanted.contains(name)) continue;
      ports.push_back(read_port(tree, checks::below(folder, port), std::move(name)));
    }
  }
  return ports;
}

}  // namespace beeline::exporter
