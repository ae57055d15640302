// Python bindings of the placement searches.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "plan/portfolio.hpp"

namespace nb = nanobind;
using namespace plan;

namespace {

using Pairs = std::vector<std::tuple<int, int, bool>>;
using Rises = std::vector<std::tuple<int, int, Bytes>>;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Stops at the deadline, and when Python has an exception to raise (Ctrl-C), asked every 50 ms.
class PythonLimit : public Limit {
 public:
  PythonLimit(double seconds, std::int64_t steps)
      : Limit(steps < 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(steps)),
        started_(seconds_now()),
        asked_(started_) {
    if (seconds >= 0) deadline_ = started_ + seconds;
  }
  double elapsed() const { return seconds_now() - started_; }
  bool interrupted() const override { return interrupted_; }
  void interrupt() { interrupted_ = true; }

 protected:
  bool check() override {
    if (interrupted_) return true;
    const double now = seconds_now();
    if (now - asked_ > 0.05) {
      asked_ = now;
      nb::gil_scoped_acquire lock;
      if (PyErr_CheckSignals() != 0) interrupted_ = true;
    }
    return interrupted_ || now >= deadline_;
  }

 private:
  double started_, asked_, deadline_ = 1e300;
  bool interrupted_ = false;
};

Instance make_instance(int sections, const Array<Bytes>& lower, const Array<Bytes>& upper,
                       const Array<Bytes>& size, const Array<Bytes>& alignment,
                       const Array<Bytes>& fixed, const Pairs& pairs, const Rises& rises) {
  const std::size_t n = size.size();
  if (lower.size() != n || upper.size() != n || alignment.size() != n || fixed.size() != n)
    throw std::invalid_argument("the columns of the instance differ in length");
  for (std::size_t i = 0; i < n; ++i)
    if (lower.data()[i] < 0 || lower.data()[i] >= upper.data()[i] || upper.data()[i] > sections ||
        size.data()[i] <= 0 || alignment.data()[i] <= 0)
      throw std::invalid_argument("a buffer of the instance is out of range");
  Instance in;
  in.sections = sections;
  in.lower = copied<int>(lower), in.upper = copied<int>(upper), in.size = copied<Bytes>(size);
  in.alignment = copied<Bytes>(alignment), in.fixed = copied<Bytes>(fixed);
  in.partners.resize(n);
  for (const auto& [i, j, anywhere] : pairs) {
    in.partners.at(i).push_back({j, anywhere});
    in.partners.at(j).push_back({i, anywhere});
  }
  in.below.resize(n);
  in.paired.assign(n, 0);
  for (const auto& [i, j, rise] : rises) {
    if (rise <= 0) throw std::invalid_argument("a distance of the instance is out of range");
    in.below.at(i).push_back({j, rise});
    in.paired.at(i) = in.paired.at(j) = 1;
  }
  return in;
}

Rules make_rules(const nb::dict& names) {
  Rules rules;
  const std::map<std::string, bool*> known = {
      {"stack", &rules.stack}, {"first", &rules.first}, {"suffix", &rules.suffix},
      {"dominance", &rules.dominance}, {"twins", &rules.twins}, {"split", &rules.split},
      {"memo", &rules.memo}};
  for (auto [name, on] : names) *known.at(nb::cast<std::string>(name)) = nb::cast<bool>(on);
  return rules;
}

nb::dict to_dict(Answer answer) {
  nb::dict result;
  result["offsets"] = made(std::move(answer.offsets));
  result["arena"] = answer.arena;
  result["bound"] = answer.bound;
  result["nodes"] = answer.nodes;
  result["rounds"] = answer.rounds;
  result["stopped"] = answer.stopped;
  result["found_by"] = answer.found_by;
  return result;
}

nb::dict solve_from_python(const Instance& instance, Bytes bound, Bytes capacity, Bytes enough,
                           const nb::dict& rules, std::uint64_t seed, bool exact, double seconds,
                           std::int64_t steps, const nb::object& progress, bool keep) {
  Request request;
  request.bound = bound, request.capacity = capacity, request.rules = make_rules(rules);
  request.enough = enough, request.seed = seed, request.exact = exact;
  PythonLimit limit(seconds, steps);
  const Report report = [&](const Answer& answer) {
    nb::gil_scoped_acquire lock;
    if (progress.is_none() || limit.interrupted()) return;
    try {
      progress(limit.elapsed(), answer.arena, answer.bound, answer.nodes);
    } catch (nb::python_error& error) {
      error.restore();
      limit.interrupt();
    }
  };
  Answer answer;
  {
    nb::gil_scoped_release unlock;
    answer = solve(instance, request, limit, report);
  }
  bool interrupted = false;
  if (PyErr_Occurred()) {
    interrupted = keep && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    if (!interrupted || answer.offsets.empty()) throw nb::python_error();
    PyErr_Clear();
  }
  nb::dict result = to_dict(std::move(answer));
  result["interrupted"] = interrupted;
  return result;
}

nb::object decide_from_python(const Instance& instance, Bytes capacity, const nb::dict& rules,
                              std::uint64_t seed, double seconds) {
  const Rules chosen = make_rules(rules);
  PythonLimit limit(seconds, -1);
  std::vector<Bytes> offsets;
  Verdict verdict;
  {
    nb::gil_scoped_release unlock;
    verdict = decide(instance, capacity, chosen, seed, limit, &offsets);
  }
  if (PyErr_Occurred()) throw nb::python_error();
  if (verdict == Verdict::kStopped) return nb::none();
  return nb::make_tuple(verdict == Verdict::kPlaced, made(std::move(offsets)));
}

}  // namespace

NB_MODULE(_plan, module) {
  module.doc() = "Native placement searches of tvm-serenity.";
  nb::class_<Instance>(module, "Instance");
  module.def("instance", &make_instance, nb::arg("sections"), nb::arg("lower"), nb::arg("upper"),
             nb::arg("size"), nb::arg("alignment"), nb::arg("fixed"), nb::arg("pairs"),
             nb::arg("rises") = Rises());
  module.def("solve", &solve_from_python, nb::arg("instance"), nb::arg("bound"),
             nb::arg("capacity"), nb::arg("enough"), nb::arg("rules"), nb::arg("seed"),
             nb::arg("exact"), nb::arg("seconds"), nb::arg("steps"), nb::arg("progress").none(),
             nb::arg("keep") = false,
             "The best placement found and a proved bound; with keep also where Ctrl-C ends it.");
  module.def("decide", &decide_from_python, nb::arg("instance"), nb::arg("capacity"),
             nb::arg("rules"), nb::arg("seed"), nb::arg("seconds"),
             "(True, offsets), (False, []) where proved impossible, None where out of time.");
}
