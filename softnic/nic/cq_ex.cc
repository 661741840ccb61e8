// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/cq_ex.h"

#include <cerrno>

#include "softnic/nic/cq.h"

namespace softnic {
namespace {

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  return attr->comp_mask != 0 ? EINVAL : Cq::of(cq).start_poll();
}
int next_poll(ibv_cq_ex* cq) { return Cq::of(cq).next_poll(); }
void end_poll(ibv_cq_ex* cq) { Cq::of(cq).end_poll(); }

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) { return Cq::of(cq).current().opcode; }
std::uint32_t read_vendor_err(ibv_cq_ex* cq) { return Cq::of(cq).current().vendor_err; }
std::uint32_t read_byte_len(ibv_cq_ex* cq) { return Cq::of(cq).current().byte_len; }
__be32 read_imm_data(ibv_cq_ex* cq) { return Cq::of(cq).current().imm_data; }
std::uint32_t read_qp_num(ibv_cq_ex* cq) { return Cq::of(cq).current().qp_num; }
std::uint32_t read_src_qp(ibv_cq_ex* cq) { return Cq::of(cq).current().src_qp; }
unsigned int read_wc_flags(ibv_cq_ex* cq) { return Cq::of(cq).current().wc_flags; }
std::uint32_t read_slid(ibv_cq_ex* cq) { return Cq::of(cq).current().slid; }
std::uint8_t read_sl(ibv_cq_ex* cq) { return Cq::of(cq).current().sl; }
std::uint8_t read_dlid_path_bits(ibv_cq_ex* cq) { return Cq::of(cq).current().dlid_path_bits; }

}  // namespace

void install_poll_functions(ibv_cq_ex& cq) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read_opcode;
  cq.read_vendor_err = read_vendor_err;
  cq.read_byte_len = read_byte_len;
  cq.read_imm_data = read_imm_data;
  cq.read_qp_num = read_qp_num;
  cq.read_src_qp = read_src_qp;
  cq.read_wc_flags = read_wc_flags;
  cq.read_slid = read_slid;
  cq.read_sl = read_sl;
  cq.read_dlid_path_bits = read_dlid_path_bits;
}

}  // namespace softnic
