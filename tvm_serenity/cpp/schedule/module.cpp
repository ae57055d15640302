// Python bindings of the order searches; schedule/reference.py is the same in plain Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "arrays.hpp"
#include "schedule/beam.hpp"
#include "schedule/branch.hpp"
#include "schedule/cut.hpp"
#include "schedule/decide.hpp"
#include "schedule/walk.hpp"

namespace nb = nanobind;
using namespace schedule;

namespace {

const char* name_of(Status status) {
  switch (status) {
    case Status::feasible: return "feasible";
    case Status::infeasible: return "infeasible";
    case Status::states: return "states";
    case Status::time: return "time";
    default: return "memory";
  }
}

Instance instance_of(const nb::tuple& predecessors, std::vector<Bytes> sizes,
                     const nb::tuple& producers, const nb::tuple& consumers,
                     std::vector<Bytes> workspace, const nb::tuple& in_place,
                     std::vector<Bytes> takeover) {
  Instance instance;
  instance.predecessors = lists_of(predecessors);
  instance.sizes = std::move(sizes);
  instance.producers = lists_of(producers);
  instance.consumers = lists_of(consumers);
  instance.workspace = std::move(workspace);
  instance.in_place = lists_of(in_place);
  instance.takeover = std::move(takeover);
  return instance;
}

struct Core {
  Instance instance;
  Closures closures;
  Rules rules;

  Core(Instance given, Rules rules)
      : instance(finished(std::move(given))), closures(instance), rules(rules) {}

  static Instance finished(Instance given) {
    given.finish();
    return given;
  }
};

// Ctrl-C and the progress report need the interpreter; the search runs without it.
Limits limits_of(std::uint64_t states, double seconds, std::size_t memory_bytes,
                 nb::object report) {
  Limits limits;
  limits.states = states;
  limits.seconds = seconds;
  limits.memory_bytes = memory_bytes;
  limits.poll = [report](std::uint64_t done) {
    nb::gil_scoped_acquire interpreter;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!report.is_none()) report(done);
  };
  return limits;
}

using Answer = std::tuple<std::string, std::vector<int>, Bytes, std::uint64_t>;

Answer decide_in(const Core& core, Bytes budget, std::uint64_t states, double seconds,
                 std::size_t memory_bytes, nb::object report) {
  Limits limits = limits_of(states, seconds, memory_bytes, std::move(report));
  Decision found;
  {
    nb::gil_scoped_release released;
    found = decide(core.instance, core.closures, core.rules, budget, limits);
  }
  return {name_of(found.status), std::move(found.order), found.next, found.states};
}

std::vector<int> beam_in(const Core& core, Bytes budget, int width, double seconds,
                         nb::object report) {
  Limits limits = limits_of(UINT64_MAX, seconds, SIZE_MAX, std::move(report));
  std::vector<int> found;
  {
    nb::gil_scoped_release released;
    found = beam(core.instance, core.closures, core.rules, budget, width, limits);
  }
  return found;
}

// The bound so far, and the nodes so far.
std::tuple<Bytes, std::uint64_t> branch_in(Branching& branching, std::uint64_t nodes,
                                           double seconds, nb::object report) {
  Limits limits = limits_of(nodes, seconds, SIZE_MAX, std::move(report));
  {
    nb::gil_scoped_release released;
    branching.run(limits);
  }
  return {branching.bound(), branching.nodes()};
}

// The bytes and the state of a cut; 0 bytes where the limit came first.
template <class Work>
std::tuple<Bytes, std::vector<int>> cut_of(Work work) {
  Cut cut;
  {
    nb::gil_scoped_release released;
    cut = work();
  }
  return {cut.bytes, std::move(cut.set)};
}

std::vector<int> greedy_in(const Walk& walk, bool newest_first, double seconds) {
  Limits limits = limits_of(UINT64_MAX, seconds, SIZE_MAX, nb::none());
  nb::gil_scoped_release released;
  return walk.greedy(newest_first, limits);
}

std::vector<int> on_demand_in(const Walk& walk, double seconds) {
  Limits limits = limits_of(UINT64_MAX, seconds, SIZE_MAX, nb::none());
  nb::gil_scoped_release released;
  return walk.on_demand(limits);
}

}  // namespace

NB_MODULE(_schedule, module) {
  module.doc() = "Native order searches of tvm-serenity.";
  nb::class_<Branching>(module, "Branching")
      .def("run", &branch_in, nb::arg("nodes"), nb::arg("seconds"), nb::arg("report").none())
      .def("branches", &Branching::branches);
  nb::class_<Core>(module, "Core")
      .def(
          "__init__",
          [](Core* self, const nb::tuple& predecessors, std::vector<Bytes> sizes,
             const nb::tuple& producers, const nb::tuple& consumers,
             std::vector<Bytes> workspace, const nb::tuple& in_place,
             std::vector<Bytes> takeover, bool blocks, bool commit, bool visited) {
            new (self) Core(
                instance_of(predecessors, std::move(sizes), producers, consumers,
                            std::move(workspace), in_place, std::move(takeover)),
                Rules{blocks, commit, visited});
          },
          nb::arg("predecessors"), nb::arg("sizes"), nb::arg("producers"), nb::arg("consumers"),
          nb::arg("workspace"), nb::arg("in_place"), nb::arg("takeover"), nb::arg("blocks"),
          nb::arg("commit"), nb::arg("visited"))
      .def("decide", &decide_in, nb::arg("budget"), nb::arg("states"), nb::arg("seconds"),
           nb::arg("memory_bytes"), nb::arg("report").none())
      .def("beam", &beam_in, nb::arg("budget"), nb::arg("width"), nb::arg("seconds"),
           nb::arg("report").none())
      .def(
          "branching",
          [](const Core& core, Bytes enough) { return Branching(core.instance, enough); },
          nb::arg("enough"), nb::keep_alive<0, 1>())
      .def("root_cut", [](const Core& core, int op) {
        Limits unlimited;
        return cut_of([&] { return root_cut(core.instance, op, unlimited); });
      }, nb::arg("op"));
  nb::class_<Walk>(module, "Walk")
      .def(
          "__init__",
          [](Walk* self, const nb::tuple& predecessors, std::vector<Bytes> sizes,
             const nb::tuple& producers, const nb::tuple& consumers,
             std::vector<Bytes> workspace, const nb::tuple& in_place,
             std::vector<Bytes> takeover) {
            new (self) Walk(
                instance_of(predecessors, std::move(sizes), producers, consumers,
                            std::move(workspace), in_place, std::move(takeover)));
          },
          nb::arg("predecessors"), nb::arg("sizes"), nb::arg("producers"), nb::arg("consumers"),
          nb::arg("workspace"), nb::arg("in_place"), nb::arg("takeover"))
      .def("profile",
           [](const Walk& walk, const std::vector<int>& order) {
             OrderProfile found = walk.profile(order);
             return std::make_tuple(std::move(found.live), std::move(found.need));
           },
           nb::arg("order"))
      .def("peak",
           [](const Walk& walk, const std::vector<int>& order) {
             return walk.profile(order).peak();
           },
           nb::arg("order"))
      .def("on_demand", &on_demand_in, nb::arg("seconds"))
      .def("greedy", &greedy_in, nb::arg("newest_first"), nb::arg("seconds"))
      .def("root_cut", [](const Walk& walk, int op, double seconds) {
        Limits limits = limits_of(UINT64_MAX, seconds, SIZE_MAX, nb::none());
        return cut_of([&] { return walk.root_cut(op, limits); });
      }, nb::arg("op"), nb::arg("seconds"))
      .def("reversed", &Walk::reversed);
}
