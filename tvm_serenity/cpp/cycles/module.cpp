// tvm_serenity._cycles: prices what an emulator runs; see tvm_serenity.cycles.emulate.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "cycles/driver.hpp"

namespace nb = nanobind;
using namespace cycles;

namespace {

using Ints = std::vector<std::int64_t>;

Core core_of(const Ints& v) {
  return {u32(v.at(0)), u32(v.at(1)), u32(v.at(2)), u32(v.at(3)), u32(v.at(4)), u32(v.at(5)),
          v.at(6) != 0, u32(v.at(7)), u32(v.at(8)), u32(v.at(9)), u32(v.at(10)), u32(v.at(11)),
          v.at(12) != 0};
}

Memories memories_of(const std::vector<Ints>& memories, const std::vector<Ints>& caches, int ports) {
  Memories made;
  for (const Ints& v : memories)
    made.memories.push_back({u32(v.at(0)), u32(v.at(1)), u32(v.at(2)), u32(v.at(3)), u32(v.at(4)),
                             v.at(5) != 0, int(v.at(6)), int(v.at(7)), int(v.at(8)), v.at(9) != 0});
  for (const Ints& v : caches)
    made.caches.emplace_back(u32(v.at(0)), u32(v.at(1)), u32(v.at(2)), u32(v.at(3)));
  made.port_free.assign(std::size_t(ports), 0);
  return made;
}

Row row_of(const Ints& v) {
  Row row;
  row.kind = u8(v.at(0));
  row.size = u8(v.at(1));
  row.count = u8(v.at(2));
  row.cycles = u8(v.at(3));
  row.most = u8(v.at(4));
  row.latency = u8(v.at(5));
  row.base = u8(v.at(6));
  row.index = u8(v.at(7));
  row.shift = u8(v.at(8));
  row.bytes = u8(v.at(9));
  row.displacement = int(v.at(10));
  row.written = u32(v.at(11));
  row.address = u32(v.at(12));
  row.read = u32(v.at(13));
  row.float_written = u32(v.at(14));
  row.float_read = u32(v.at(15));
  row.flags = u32(v.at(16));
  return row;
}

// Keeps the decoder that Python gave, and the error that it raised.
struct Follower {
  nb::object decode;
  nb::object error;
  std::unique_ptr<Driver> driver;

  Follower(const Ints& core, const std::vector<Ints>& memories, const std::vector<Ints>& caches,
           int ports, const std::vector<Ints>& refills, nb::object decoder, u64 limit)
      : decode(std::move(decoder)), error(nb::none()) {
    std::vector<Pipeline> pipelines;
    const Memories board = memories_of(memories, caches, ports);
    for (const Ints& r : refills)
      pipelines.emplace_back(core_of(core), board, Refill{u32(r.at(0)), u32(r.at(1))});
    driver = std::make_unique<Driver>(
        std::move(pipelines), [this](u32 pc, Row& row) { return decoded(pc, row); }, limit);
  }

  bool decoded(u32 pc, Row& row) {
    nb::gil_scoped_acquire held;
    try {
      row = row_of(nb::cast<Ints>(decode(pc)));
      return true;
    } catch (nb::python_error& raised) {
      error = nb::borrow(raised.value());
      return false;
    }
  }

  void follow(std::uintptr_t reg_read, std::uintptr_t stop, std::uintptr_t engine,
              const std::vector<int>& registers, u32 pc) {
    driver->follow({reinterpret_cast<int (*)(void*, int, void*)>(reg_read),
                    reinterpret_cast<int (*)(void*)>(stop), reinterpret_cast<void*>(engine),
                    registers},
                   pc);
  }
};

nb::dict told(const Pipeline& pipeline) {
  nb::dict found;
  found["cycles"] = pipeline.now();
  found["core"] = pipeline.spent().core;
  found["branches"] = pipeline.spent().branches;
  found["fetch"] = pipeline.spent().fetch;
  found["data"] = pipeline.spent().data;
  nb::list misses;
  for (const Cache& cache : pipeline.memories().caches)
    misses.append(nb::make_tuple(cache.hits, cache.misses));
  found["caches"] = misses;
  return found;
}

nb::dict result(const Follower& self) {
  const Driver& driver = *self.driver;
  nb::dict found;
  found["instructions"] = driver.instructions();
  found["taken"] = driver.taken();
  found["skipped"] = driver.skipped();
  found["at_limit"] = driver.at_limit();
  found["loads"] = driver.loads();
  found["stores"] = driver.stores();
  nb::list pipelines, segments, rows;
  for (const Pipeline& pipeline : driver.pipelines()) pipelines.append(told(pipeline));
  for (const Segment& segment : driver.segments())
    segments.append(nb::make_tuple(segment.entry, segment.instructions, segment.cycles));
  for (const auto& [pc, here] : driver.rows())
    rows.append(nb::make_tuple(pc, here->count, here->cycles));
  found["pipelines"] = pipelines;
  found["segments"] = segments;
  found["rows"] = rows;
  return found;
}

}  // namespace

NB_MODULE(_cycles, m) {
  nb::set_leak_warnings(false);  // an error that ends the process holds what it was raised in
  nb::class_<Follower>(m, "Follower")
      .def(nb::init<const Ints&, const std::vector<Ints>&, const std::vector<Ints>&, int,
                    const std::vector<Ints>&, nb::object, u64>(),
           nb::arg("core"), nb::arg("memories"), nb::arg("caches"), nb::arg("ports"),
           nb::arg("refills"), nb::arg("decode"), nb::arg("limit"))
      .def("follow", &Follower::follow)
      .def("finish", [](Follower& self, u32 pc) { self.driver->finish(pc); })
      .def_prop_ro("address", [](const Follower& self) {
        return reinterpret_cast<std::uintptr_t>(self.driver.get());
      })
      .def_ro("error", &Follower::error)
      .def("result", &result);
  m.attr("hook") = reinterpret_cast<std::uintptr_t>(&Driver::hook);
}
