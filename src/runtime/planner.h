// From functions to kernels over slots: memory, aliases and copies of one function at a time.
#pragma once

#include <unordered_map>

#include "graph/view.h"
#include "runtime/program.h"

namespace hierarchos {

// Makes each distinct kernel once.
class KernelCache {
 public:
  KernelCache(Backend& backend, std::vector<std::unique_ptr<Kernel>>& kernels) : backend_(backend), kernels_(kernels) {}
  struct Made {
    const Kernel* kernel;
    std::shared_ptr<const KernelRequest> request;
  };
  Made get(KernelRequest request);

 private:
  Backend& backend_;
  std::vector<std::unique_ptr<Kernel>>& kernels_;
  std::unordered_multimap<uint64_t, Made> made_;
};

class FunctionPlanner {
 public:
  // `plans` holds the plans of all bodies that `function` uses. `in_place_only`: scan or predicate use the function, so
  // results may alias only what they update.
  FunctionPlanner(const Graph& graph, const Function& function, const std::vector<FunctionPlan>& plans, KernelCache& kernels,
                  int64_t alignment, bool copies_unmodified)
      : graph_(graph), f_(function), plans_(plans), kernels_(kernels), alignment_(alignment),
        copies_unmodified_(copies_unmodified) {}

  FunctionPlan plan();

 private:
  struct Memory {  // one piece of memory that values lie in
    SlotRef::Base base = SlotRef::Base::Frame;
    uint32_t index = 0;
    int64_t bytes = 0;
    int version = 0;      // counts updates
    bool leaf_fixed = false;  // an input, parameter or constant of the root: never overwritten
    int first = -1, last = -1;  // steps that touch it
    int64_t offset = 0;   // in the frame
    bool claimed = false; // became a result's memory
  };
  struct Place {
    int memory = -1;
    StridedView view;
    int version = 0;
  };
  struct Ref {
    int memory = -1;
    int64_t offset = 0;  // bytes
  };
  struct Draft {  // a PlanStep whose slots are not yet known
    PlanStep step;
    std::vector<Ref> inputs, outputs, carry_buffers;
    Ref scratch, flag;
    int level = 0;
  };

  int new_memory(int64_t bytes);
  Place place_of(ValueId v) const;  // checks that its version is current
  Ref ref_of(ValueId v, const Place& place) const;
  Place contiguous(ValueId v);  // copies a strided view
  Place copy(ValueId v, const Place& from, int into = -1);
  Place owned(ValueId v, const std::string& scope);  // contiguous memory that may be overwritten
  void copy_step(const Type& type, const Place& from, int into, const std::string& scope);
  void add(Draft draft);

  void plan_view(const Node& node);
  void plan_kernel(const Node& node, int32_t index);
  void plan_call(const Node& node, int32_t index);
  void plan_scan(const Node& node, int32_t index);
  void plan_predicate(const Node& node, int32_t index);
  void place_results();
  void place_root();
  bool whole(ValueId v, const Place& place) const;
  bool may_write_over(int step, int memory) const;
  void assign_offsets();
  SlotRef slot(const Ref& ref) const;

  const Graph& graph_;
  const Function& f_;
  const std::vector<FunctionPlan>& plans_;
  KernelCache& kernels_;
  int64_t alignment_;
  bool copies_unmodified_;
  std::vector<Memory> memories_;
  std::vector<Place> places_;
  std::vector<Draft> drafts_;
  std::vector<int> argument_memory_;
  FunctionPlan plan_;
};

}  // namespace hierarchos
