// One instruction for the timing models: the fields that the Python side decoded.
#pragma once

#include <cstdint>

namespace cycles {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// In the order of tvm_serenity.cycles.core.KINDS.
enum Kind : u8 {
  kAlu, kMultiply, kDivide, kLoad, kLoadMany, kStore, kStoreIndexed, kStoreMany, kBranch,
  kBranchIndirect, kBranchTable, kIt, kFloat, kFloatLoad, kFloatStore, kBarrier
};

// As tvm_serenity.cycles.families.record has them.
enum Flag : u32 {
  kStores = 1, kWritesBack = 2, kWritesPc = 4, kLate = 8, kIsFloat = 16, kEntry = 32, kAlone = 64,
  kDivides = 128, kSlow = 256
};

constexpr u8 kNoRegister = 255;
constexpr u8 kPc = 15;    // of all architectures: the decoder numbers the registers so
constexpr u8 kLink = 14;

struct Row {
  u8 kind = kAlu, size = 0, count = 1, cycles = 1, most = 1, latency = 1;
  u8 base = kNoRegister, index = kNoRegister, shift = 0, bytes = 0;
  int displacement = 0;
  u32 written = 0, address = 0, read = 0;
  u32 float_written = 0, float_read = 0, flags = 0;

  bool is(Flag flag) const { return flags & flag; }
  bool loads() const { return bytes && !is(kStores); }
  bool branches() const {
    return kind == kBranch || kind == kBranchIndirect || kind == kBranchTable || is(kWritesPc);
  }
};

// One access of an instruction to memory.
struct Access {
  u32 address;
  u8 bytes;
  bool store;
};

}  // namespace cycles
