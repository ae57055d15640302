// Python bindings of the I/O simulator and the searches for orders; sparse/reference.py is the
// simulator in plain Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "sparse/anneal.hpp"
#include "sparse/greedy.hpp"
#include "sparse/simulate.hpp"

namespace nb = nanobind;
using namespace sparse;

namespace {

void check_numbers(const std::vector<int>& values, std::size_t count) {
  for (int v : values)
    if (v < 0 || static_cast<std::size_t>(v) >= count) throw std::invalid_argument("out of range");
}

std::vector<int> order_of(const Network& net, const Array<int>& order) {
  std::vector<int> found = copied<int>(order);
  if (found.size() != net.source.size()) throw std::invalid_argument("order of another network");
  check_numbers(found, net.source.size());
  return found;
}

Rule rule_of(int policy, int memory, int delay) {
  if (policy < 0 || policy > 3 || memory < 3 || delay < 0)
    throw std::invalid_argument("no such rule");
  return {static_cast<Policy>(policy), memory, delay};
}

// Ctrl-C needs the interpreter; searches run without it.
void poll() {
  nb::gil_scoped_acquire interpreter;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// The report of a search: true goes on. Ctrl-C ends the search, which keeps its best.
Report report_of(const nb::object& told) {
  return [told](std::int64_t iterations, std::int64_t best) {
    nb::gil_scoped_acquire interpreter;
    if (PyErr_CheckSignals() != 0) {
      if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw nb::python_error();
      PyErr_Clear();
      return false;
    }
    if (!told.is_none()) told(iterations, best);
    return true;
  };
}

std::pair<std::int64_t, std::int64_t> simulate_in(const Network& net, Array<int> order, int policy,
                                                  int memory, int delay) {
  const std::vector<int> given = order_of(net, order);
  const Rule rule = rule_of(policy, memory, delay);
  nb::gil_scoped_release released;
  const Traffic found = simulate(net, given, rule);
  return {found.reads, found.writes};
}

nb::tuple trace_in(const Network& net, Array<int> order, int policy, int memory, int delay) {
  std::vector<Event> events;
  simulate(net, order_of(net, order), rule_of(policy, memory, delay), &events);
  std::vector<int> positions, neurons;
  std::vector<std::uint8_t> kinds;
  for (const Event& e : events) {
    positions.push_back(e.position);
    neurons.push_back(e.neuron);
    kinds.push_back(static_cast<std::uint8_t>(e.kind));
  }
  return nb::make_tuple(made(std::move(positions)), made(std::move(neurons)),
                        made(std::move(kinds)));
}

nb::tuple anneal_in(const Network& net, Array<int> order, int policy, int memory, int delay,
                    std::int64_t iterations, int window, double cooling, std::uint64_t seed,
                    double blocks, int block, std::int64_t first_iteration, double seconds,
                    bool incremental, nb::object told) {
  const std::vector<int> start = order_of(net, order);
  const Rule rule = rule_of(policy, memory, delay);
  if (window < 1 || block < 1 || iterations < 0) throw std::invalid_argument("no such annealing");
  const Annealing options{iterations, window, cooling,         seed,    blocks,
                          block,      first_iteration, seconds, incremental};
  const Report report = report_of(told);
  Annealed found;
  {
    nb::gil_scoped_release released;
    found = anneal(net, start, rule, options, report);
  }
  return nb::make_tuple(made(std::move(found.order)), found.total, found.iterations, found.changed,
                        found.accepted, found.simulated, found.limit);
}

struct OutOfTime {};

// An order, or none where the time is up first. Weights in the order of the struct.
nb::object greedy_in(const Network& net, int room, Array<double> weights, double noise,
                     std::uint64_t seed, double seconds) {
  if (room < 2) throw std::invalid_argument("no room for a connection's neurons");
  if (weights.size() != sizeof(Weights) / sizeof(double))
    throw std::invalid_argument("not as many weights as there are");
  Greed options{room, {}, noise, seed};
  std::memcpy(static_cast<void*>(&options.weights), weights.data(), sizeof(Weights));
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto look = [&] {
    poll();
    if (std::chrono::duration<double>(Clock::now() - begin).count() > seconds) throw OutOfTime();
  };
  std::vector<int> order;
  try {
    nb::gil_scoped_release released;
    order = greedy(net, options, look);
  } catch (const OutOfTime&) {
    return nb::none();
  }
  return nb::cast(made(std::move(order)));
}

}  // namespace

NB_MODULE(_sparse, module) {
  module.doc() = "Native I/O simulator and order searches for sparse networks of tvm-serenity.";
  nb::class_<Network>(module, "Network")
      .def("__init__", [](Network* self, Array<int> sources, Array<int> targets,
                          Array<bool> outputs) {
        const std::vector<int> from = copied<int>(sources), to = copied<int>(targets);
        if (from.size() != to.size()) throw std::invalid_argument("one target for each source");
        check_numbers(from, outputs.size());
        check_numbers(to, outputs.size());
        new (self) Network(from, to, copied<char>(outputs));
      });
  module.def("simulate", &simulate_in, nb::arg("network"), nb::arg("order"), nb::arg("policy"),
             nb::arg("memory"), nb::arg("delay"));
  module.def("trace", &trace_in, nb::arg("network"), nb::arg("order"), nb::arg("policy"),
             nb::arg("memory"), nb::arg("delay"));
  module.def("greedy", &greedy_in, nb::arg("network"), nb::kw_only(), nb::arg("room"),
             nb::arg("weights"), nb::arg("noise"), nb::arg("seed"), nb::arg("seconds"));
  module.def("anneal", &anneal_in, nb::arg("network"), nb::arg("order"), nb::arg("policy"),
             nb::arg("memory"), nb::arg("delay"), nb::kw_only(), nb::arg("iterations"),
             nb::arg("window"), nb::arg("cooling"), nb::arg("seed"), nb::arg("blocks"),
             nb::arg("block"), nb::arg("first_iteration"), nb::arg("seconds"),
             nb::arg("incremental"), nb::arg("report").none());
}
