// Python bindings of the cache simulators and the traffic search; offchip/reference.py is the
// simulator in plain Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <limits>
#include <memory>
#include <stdexcept>
#include <tuple>

#include "arrays.hpp"
#include "offchip/search.hpp"
#include "offchip/simulate.hpp"
#include "offchip/stack.hpp"

namespace nb = nanobind;
using namespace offchip;

namespace {

using Row = std::tuple<Bytes, Bytes, Bytes, Bytes, Bytes>;
constexpr double kForever = std::numeric_limits<double>::infinity();

// Whether so many seconds are over. Ctrl-C needs the interpreter; the simulation runs without it.
Late late_after(double seconds) {
  using Clock = std::chrono::steady_clock;
  return [seconds, start = Clock::now(), asked = Clock::now()]() mutable {
    const auto now = Clock::now();
    if (now - asked > std::chrono::milliseconds(20)) {
      nb::gil_scoped_acquire interpreter;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      asked = now;
    }
    return std::chrono::duration<double>(now - start).count() > seconds;
  };
}

// A simulation that has no answer in time is Python's TimeoutError.
template <class Work>
auto in_time(double seconds, Work work) {
  try {
    nb::gil_scoped_release released;
    return work(late_after(seconds));
  } catch (const TooLate&) {
    PyErr_SetString(PyExc_TimeoutError, "the simulation takes longer than its time limit");
    throw nb::python_error();
  }
}

Trace trace_of(const Array<std::int32_t>& block, const Array<std::uint8_t>& kind,
               const Array<Bytes>& size, const Array<std::uint8_t>& kept) {
  if (block.size() != kind.size() || size.size() != kept.size())
    throw std::invalid_argument("arrays of a trace differ in length");
  if (block.size() >= std::size_t(INT32_MAX)) throw std::invalid_argument("trace too long");
  for (std::size_t i = 0; i < block.size(); ++i)
    if (block.data()[i] < 0 || std::size_t(block.data()[i]) >= size.size())
      throw std::invalid_argument("block number out of range");
  return {block.data(), kind.data(), std::int64_t(block.size()),
          size.data(),  kept.data(), std::int64_t(size.size())};
}

Row row_of(const Traffic& t) { return {t.read, t.write, t.created, t.evicted, t.dropped}; }

Row simulate_in(Array<std::int32_t> block, Array<std::uint8_t> kind, Array<Bytes> size,
                Array<std::uint8_t> kept, Array<std::int64_t> group_end, Array<Bytes> reserve,
                Array<Bytes> room, Bytes capacity, int policy, double seconds) {
  const Trace trace = trace_of(block, kind, size, kept);
  if (group_end.size() != reserve.size() || room.size() != size.size())
    throw std::invalid_argument("arrays of a trace differ in length");
  const Groups groups{group_end.data(), reserve.data(), std::int64_t(group_end.size())};
  return in_time(seconds, [&](const Late& late) {
    return row_of(simulate(trace, groups, room.data(), capacity, Policy(policy), late));
  });
}

std::vector<Row> sweep_in(Array<std::int32_t> block, Array<std::uint8_t> kind, Array<Bytes> size,
                          Array<std::uint8_t> kept, std::vector<std::int64_t> slots, bool lru,
                          double seconds) {
  const Trace trace = trace_of(block, kind, size, kept);
  if (slots.empty() || slots.size() > 60000) throw std::invalid_argument("1 to 60000 capacities");
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (slots[i] <= (i ? slots[i - 1] : 0)) throw std::invalid_argument("slots must ascend from 1");
  return in_time(seconds, [&](const Late& late) {
    std::vector<Row> rows;
    for (const Traffic& t : (lru ? sweep_lru : sweep_min)(trace, slots, late))
      rows.push_back(row_of(t));
    return rows;
  });
}

// Holds the network by value: searches refer to it and are kept alive by their Python objects.
template <class Search>
struct Owned {
  Network network;
  std::unique_ptr<Search> search;
};
using Climb = Owned<LocalSearch>;
using Branch = Owned<BranchAndBound>;

}  // namespace

NB_MODULE(_offchip, module) {
  module.doc() = "Native cache simulators and traffic search of tvm-serenity.";
  module.def("simulate", &simulate_in, nb::arg("block"), nb::arg("kind"), nb::arg("size"),
             nb::arg("kept"), nb::arg("group_end"), nb::arg("reserve"), nb::arg("room"),
             nb::arg("capacity"), nb::arg("policy"), nb::arg("seconds") = kForever);
  module.def("sweep", &sweep_in, nb::arg("block"), nb::arg("kind"), nb::arg("size"),
             nb::arg("kept"), nb::arg("slots"), nb::arg("lru"), nb::arg("seconds") = kForever);

  nb::class_<Network>(module, "Network")
      .def("__init__", [](Network* self, std::vector<std::int64_t> op_begin, Array<std::int32_t> block,
                          Array<std::uint8_t> kind, std::vector<std::int32_t> storage_begin,
                          Array<Bytes> size, Array<std::uint8_t> kept, Array<std::uint8_t> home,
                          const nb::tuple& predecessors) {
        trace_of(block, kind, size, kept);
        if (home.size() != size.size() || op_begin.size() != nb::len(predecessors) + 1 ||
            op_begin.back() != std::int64_t(block.size()))
          throw std::invalid_argument("arrays of a network differ in length");
        Network network;
        network.op_begin = std::move(op_begin);
        network.block.assign(block.data(), block.data() + block.size());
        network.kind.assign(kind.data(), kind.data() + kind.size());
        network.storage_begin = std::move(storage_begin);
        network.size.assign(size.data(), size.data() + size.size());
        network.kept.assign(kept.data(), kept.data() + kept.size());
        network.home.assign(home.data(), home.data() + home.size());
        network.predecessors = lists_of(predecessors);
        network.finish(late_after(kForever));
        new (self) Network(std::move(network));
      })
      .def("traffic", [](const Network& self, std::int64_t slots, const std::vector<int>& order) {
        return Evaluator(self, slots).rebase(order);
      })
      .def("forced", [](const Network& self, Bytes room, double seconds) {
        nb::gil_scoped_release released;
        return forced_traffic(self, room, late_after(seconds));
      }, nb::arg("room"), nb::arg("seconds") = kForever)
      .def("window", [](const Network& self, std::int64_t slots, const std::vector<int>& base,
                        const std::vector<int>& order, int lo, int hi) {
        Evaluator evaluator(self, slots);
        evaluator.rebase(base);
        return evaluator.candidate(order, lo, hi);
      });

  nb::class_<Climb>(module, "LocalSearch")
      .def("__init__", [](Climb* self, const Network& network, std::int64_t slots,
                          std::vector<int> start, std::uint64_t seed, std::int64_t budget) {
        new (self) Climb{network, nullptr};
        self->search =
            std::make_unique<LocalSearch>(self->network, slots, start, seed, budget);
      })
      .def("run", [](Climb& self, std::int64_t n, double seconds, double warmth) {
        nb::gil_scoped_release released;
        return self.search->run(n, late_after(seconds), warmth);
      }, nb::arg("accesses"), nb::arg("seconds") = kForever, nb::arg("warmth") = 1.0)
      .def_prop_ro("best", [](const Climb& self) { return self.search->best(); })
      .def_prop_ro("best_bytes", [](const Climb& self) { return self.search->best_bytes(); })
      .def_prop_ro("candidates", [](const Climb& self) { return self.search->candidates(); })
      .def_prop_ro("simulated", [](const Climb& self) { return self.search->simulated(); });

  nb::class_<Branch>(module, "BranchAndBound")
      .def("__init__", [](Branch* self, const Network& network, std::int64_t slots,
                          Bytes slot_bytes, std::vector<int> incumbent, Bytes bytes, Bytes floor) {
        new (self) Branch{network, nullptr};
        self->search = std::make_unique<BranchAndBound>(self->network, slots, slot_bytes,
                                                        std::move(incumbent), bytes, floor);
      })
      .def("run", [](Branch& self, std::int64_t n, double seconds) {
        nb::gil_scoped_release released;
        return self.search->run(n, late_after(seconds));
      }, nb::arg("accesses"), nb::arg("seconds") = kForever)
      .def_prop_ro("best", [](const Branch& self) { return self.search->best(); })
      .def_prop_ro("best_bytes", [](const Branch& self) { return self.search->best_bytes(); })
      .def_prop_ro("nodes", [](const Branch& self) { return self.search->nodes(); });
}
