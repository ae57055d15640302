// Short sequences of instructions on the pipelines of tvm_serenity/cpp/cycles: one line each, the
// name and the cycles. What they must be is in test_mutants.py.
#include <cstdio>

#include "cycles/pipeline.cpp"

using namespace cycles;

namespace {

constexpr u32 kCode = 0x20000000, kData = 0x30000000;

Memories memories(Memory data = {kData, kData + 0xfffff, 4, 1, 1, false, -1, -1, -1, false}) {
  Memories made;
  made.memories.push_back({kCode, kCode + 0xffff, 4, 1, 1, false, -1, -1, -1, false});
  made.memories.push_back(data);
  made.caches.emplace_back(32, 8, 1, 2);   // two lines of four sectors
  made.caches.emplace_back(32, 32, 2, 1);  // two sets of one line
  made.port_free.assign(1, 0);
  return made;
}

// As targets/cores/cortex-m4.toml, cortex-m7.toml and hazard3.toml say.
const Core kM4{0, 4, 3, 1, 1, 1, true, 1, 2, 1, 1, 0, false};
const Core kM7{2, 8, 4, 0, 1, 0, false, 1, 1, 2, 2, 64, false};
const Core kHazard3{1, 4, 2, 0, 0, 0, false, 0, 0, 1, 1, 0, true};

struct Run {
  Pipeline pipeline;
  u32 pc = kCode;

  explicit Run(const Core& core = kM4, Memories on = memories(), Refill refill = {1, 2})
      : pipeline(core, on, refill) {
    pipeline.start(pc);
  }
  Run& go(const Row& row, std::vector<Access> accesses = {}, u32 next = 0) {
    const u32 follows = next ? next : pc + row.size;
    pipeline.step(pc, row, follows, accesses, 7);
    pc = follows;
    return *this;
  }
  void say(const char* name) const { std::printf("%s %llu\n", name, (unsigned long long)pipeline.now()); }
};

Row row(Kind kind, u8 cycles, u32 written = 0, u32 address = 0, u32 read = 0) {
  Row made;
  made.kind = kind;
  made.size = 4;
  made.cycles = made.most = made.latency = cycles;
  made.written = written;
  made.address = address;
  made.read = read;
  if (kind == kLoad || kind == kStore || kind == kStoreIndexed) made.bytes = 4;
  if (kind == kStore || kind == kStoreIndexed) made.flags = kStores;
  return made;
}

Access at(u32 offset, bool store = false) { return {kData + offset, 4, store}; }

void single() {
  const Row load = row(kLoad, 2, 1, 2), other = row(kLoad, 2, 4, 2), chained = row(kLoad, 2, 4, 1);
  Run().go(load, {at(0)}).go(other, {at(4)}).say("loads");
  Run().go(load, {at(0)}).go(chained, {at(4)}).say("chained-loads");
  Run().go(load, {at(0)}).go(row(kAlu, 1)).go(other, {at(4)}).say("loads-apart");
  Run().go(load, {at(2)}).say("half-aligned");
  Run().go(load, {at(1)}).say("byte-aligned");
  Run().go(row(kAlu, 1, 2)).go(load, {at(0)}).say("address-just-made");
  Row list = row(kLoadMany, 2, 15, 16);
  list.count = 4;
  Run().go(list).say("list");
  Run().go(row(kDivide, 2)).say("divide");
  Row product = row(kFloat, 1), sum = row(kFloat, 1);
  product.flags = kLate | kIsFloat, product.float_written = 1;
  sum.flags = kLate | kIsFloat, sum.float_read = 1;
  Run().go(product).go(sum).say("float-just-made");
  Row small = row(kAlu, 1), it = row(kIt, 1);
  small.size = it.size = 2;
  Run().go(small).go(it).go(small).say("it-folded");
  Run taken;
  for (int i = 0; i < 10; ++i) taken.go(row(kBranch, 1), {}, kCode);
  taken.say("branches");
  Run indirect;
  for (int i = 0; i < 10; ++i) indirect.go(row(kBranchIndirect, 1), {}, kCode);
  indirect.say("indirect");
}

void memory() {
  const Row load = row(kLoad, 2, 1, 2), nop = row(kAlu, 1);
  const auto sweep = [&](const char* name, Memory data, std::vector<u32> offsets) {
    Run run(kM4, memories(data));
    for (const u32 offset : offsets) run.go(load, {at(offset)}).go(nop);
    run.say(name);
  };
  const Memory waits{kData, kData + 0xfffff, 8, 5, 1, false, -1, -1, 0, false};
  Memory cached = waits, lines = waits;
  cached.data_cache = 0, lines.data_cache = 1;
  sweep("waits", waits, {0, 8, 0, 8});
  sweep("buffered", waits, {0, 4, 0, 4});
  sweep("hits", cached, {0, 8, 0, 8});
  sweep("oldest-leaves", cached, {0, 32, 0, 64, 0, 32});
  sweep("sectors", cached, {0, 8, 32, 40, 0, 8, 32, 40});
  sweep("line-filled", lines, {0, 8, 16, 24, 32, 40});
  sweep("sets", lines, {0, 32, 64, 0, 32});
  Run port(kM4, memories(waits));
  Row pair = row(kLoadMany, 2);
  pair.count = 2;
  port.go(pair, {at(0), at(8)}).say("one-port");
}

void dual() {
  const auto run = [] { return Run(kM7, memories(), {4, 4}); };
  const auto many = [&](const char* name, const Row& a, const Row& b, bool loads = false) {
    Run made = run();
    std::vector<Access> one, two;
    if (loads) one = {at(0)}, two = {at(8)};
    for (int i = 0; i < 10; ++i) made.go(a, one).go(b, two);
    made.say(name);
  };
  many("pairs", row(kAlu, 1, 1), row(kAlu, 1, 2));
  many("dependent", row(kAlu, 1, 1, 0, 1), row(kAlu, 1, 1, 0, 1));
  Row a = row(kMultiply, 1, 1), b = row(kMultiply, 1, 2);
  many("products", a, b);
  a.latency = b.latency = 2;
  a.read = b.read = b.written = 1;
  many("product-chain", a, b);
  many("two-loads", row(kLoad, 1, 1, 4), row(kLoad, 1, 2, 8), true);
  many("stores", row(kStore, 1, 0, 4), row(kStore, 1, 0, 8));
  Run loop = run();
  for (int i = 0; i < 20; ++i) loop.go(row(kBranch, 1), {}, kCode);
  loop.say("guessed");
  Run fooled = run();
  for (int i = 0; i < 20; ++i) {
    fooled.go(row(kAlu, 1), {}).go(row(kBranch, 1), {}, i % 2 ? kCode : kCode + 8);
    if (i % 2 == 0) fooled.go(row(kBranchIndirect, 1), {}, kCode);
  }
  fooled.say("guessed-wrong");
}

void single_with_latencies() {
  const u32 high = 1u << 31;
  const auto run = [] { return Run(kHazard3, memories(), {1, 1}); };
  Row load = row(kLoad, 1, high, 2), chained = row(kLoad, 1, 4, high);
  load.latency = chained.latency = 2;
  const Row add = row(kAlu, 1, 1, 0, high), other = row(kAlu, 1, 1, 0, 8);
  run().go(load, {at(0)}).go(add).say("load-use");
  run().go(load, {at(0)}).go(other).go(add).say("load-apart");
  run().go(load, {at(0)}).go(chained, {at(4)}).say("load-address");
  run().go(load, {at(0)}).go(row(kStore, 1, 0, 2, high), {at(4, true)}).say("load-stored");
  run().go(other).go(other).go(other).say("one-a-cycle");
  Run jumps = run();
  for (int i = 0; i < 10; ++i) jumps.go(row(kBranchIndirect, 1), {}, kCode);
  jumps.say("jumps");
  Run loop = run();
  for (int i = 0; i < 20; ++i) loop.go(other).go(row(kBranch, 1), {}, i < 19 ? kCode : 0);
  loop.go(other).say("loop-left");
  Run twice = run();
  for (int i = 0; i < 2; ++i) {  // the loop is left, which is forgotten, and entered again
    for (int j = 0; j < 3; ++j) twice.go(other).go(row(kBranch, 1), {}, j < 2 ? kCode : 0);
    twice.go(row(kBranchIndirect, 1), {}, kCode);
  }
  twice.go(other).say("loop-again");
  Run forward = run();
  for (int i = 0; i < 3; ++i)
    forward.go(row(kBranch, 1), {}, kCode + 64).go(row(kBranchIndirect, 1), {}, kCode);
  forward.go(other).say("forward");
  Row wide = other;
  Run odd = run();
  odd.go(row(kBranchIndirect, 1), {}, kCode + 66).go(wide).say("unaligned-target");
}

}  // namespace

int main() {
  single();
  memory();
  dual();
  single_with_latencies();
}
