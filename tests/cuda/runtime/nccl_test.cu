// tests/cuda/runtime/nccl_test.cu: communicators over NCCL on the fake runtime, where ranks are threads with a GPU
// each. Kernels compute what their PTX says.
#include <atomic>

#include "nccl_ranks.hpp"

using namespace sinter;
using namespace std::chrono_literals;
using namespace nccl_ranks;
using Catch::Contains;
using communicator_checks::has;
using communicator_checks::require_text;

static_assert(communicator_on<nccl_communicator<cuda<0>>, cuda<0>>);
static_assert(!communicator_on<nccl_communicator<cuda<0>>, cuda<1>>);
static_assert(!communicator_on<nccl_communicator<cuda<0>>, cpu>);

TEST_CASE_METHOD(on_fake_gpus, "ranks over NCCL get what the calls promise") {
  const int ranks = GENERATE(1, 2, 3);
  run_gpus<3>(ranks, [](thread_communicator&, auto& gpus) {
    using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
    require(gpus.name() == "nccl", "name");
    for (const index_t n : {0, 1, 5, 1000}) check_sums<float>(gpus, n);
    check_sums<double>(gpus, 17);
    check_sums<sinter::half>(gpus, 17);
    check_sums<bfloat16>(gpus, 17);
    check_sums<std::int32_t>(gpus, 17);
    check_sums<std::int64_t>(gpus, 17);
    for (const index_t n : {0, 3, 1000}) check_moves<float>(gpus, n);
    check_moves<std::uint8_t>(gpus, 9);
    const auto flags = tensor<bool, 1>{gpus.rank() == 0, true}.template to<D>();
    require(gpus.broadcast(flags, 0).get().template to<cpu>()(0), "broadcast of bool");
    // Several calls at a time, and results nobody asks for.
    std::vector<work<tensor<double, 1, D>>> sums;
    for (int i = 0; i < 20; ++i)
      sums.push_back(gpus.all_reduce(tensor<double, 1>{double(i)}.template to<D>(), reduction::sum, "many"));
    for (std::size_t i = 0; i < 20; i += 2)
      require(sums[i].get().template to<cpu>()(0) == double(i) * gpus.size(), "all_reduce, many");
    // Even and odd ranks, the last one first.
    const int me = gpus.rank();
    auto part = gpus.split(me % 2, -me);
    require(part.size() == (gpus.size() + 1 - me % 2) / 2, "size of split");
    require(part.rank() == part.size() - 1 - me / 2, "rank of split");
    const float sum = part.all_reduce(tensor<float, 1>{float(me)}.template to<D>()).get().template to<cpu>()(0);
    require(sum == (gpus.size() == 3 && me % 2 == 0 ? 2.f : float(me)), "all_reduce of split");
  });
  CHECK(fake_nccl::take_ended().aborted == 0);
}

TEST_CASE_METHOD(on_fake_gpus, "a maximum over NCCL is NaN where an element is") {
  run_gpus(2, [](thread_communicator&, auto& gpus) {
    using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
    const float nan = std::numeric_limits<float>::quiet_NaN(), mine = gpus.rank() == 0 ? nan : 3.f;
    const auto x = tensor<float, 1>{mine, -1.f, float(gpus.rank())}.template to<D>();
    const auto most = gpus.all_reduce(x, reduction::max).get().template to<cpu>();
    require(most(0) != most(0) && most(1) == -1 && most(2) == 1, "NaN, -1, 1");
  });
}

TEST_CASE_METHOD(on_fake_gpus,
                 "a call over NCCL reads what was put on the device before it, and runs beside the rest") {
  std::atomic<bool> asked{false};
  run_gpus(2,
           [&](thread_communicator&, auto& gpus) {
             using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
             auto x = full<float, D>({1000}, float(gpus.rank() + 1));
             for (int i = 0; i < 5; ++i) x *= 2;  // has not run when the call is made
             if (gpus.rank() == 1)
               while (!asked) std::this_thread::yield();
             auto sum = gpus.all_reduce(x);
             if (gpus.rank() == 0) {
               require(!sum.done(), "rank 1 has not called");
               auto other = full<float, D>({1000}, 5);
               require(eval(min(other * 2)).item() == 10, "the device goes on");
               asked = true;
             }
             const auto total = sum.get();
             const tensor doubled = total * 2;
             require(eval(min(doubled)).item() == 192 && eval(max(doubled)).item() == 192, "(1 + 2) 32 2");
             require(sum.done(), "nothing is left to get");
           },
           {.timeout = 20s, .checked_calls = 0});
}

TEST_CASE_METHOD(on_fake_gpus, "the memory of a call over NCCL is kept while it runs, and given back") {
  std::atomic<bool> freed{false};
  run_gpus(2,
           [&](thread_communicator&, auto& gpus) {
             using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
             const auto before = memory<D>().bytes_in_use;
             {
               auto sum = gpus.all_gather(full<float, D>({5000}, float(gpus.rank())));
               require(memory<D>().bytes_in_use >= before + 15000 * sizeof(float), "the call holds both tensors");
               if (gpus.rank() == 0) {
                 const auto noise = full<float, D>({5000}, 7.f);
                 freed = true;
               }
               while (!freed) std::this_thread::yield();
               const auto all = sum.get().template to<cpu>();
               require(all(0) == 0 && all(5000) == 1, "0 and 1");
             }
             require(memory<D>().bytes_in_use == before, "given back");
           },
           {.timeout = 20s, .checked_calls = 0});
}

TEST_CASE_METHOD(on_fake_gpus, "different calls of ranks over NCCL are named before they begin") {
  const auto errors = errors_of_two([](thread_communicator&, auto& gpus) {
    using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
    gpus.barrier("fine").get();
    const auto x = zeros<float, D>({8 + gpus.rank()});
    gpus.all_reduce(x, reduction::sum, "loss").get();
  });
  for (const communication_error& e : errors) {
    CHECK(e.kind() == communication_failure::mismatch);
    CHECK(e.number() == 2);
    CHECK(e.name() == "loss");
    CHECK_THAT(e.what(), Contains("communicator (nccl), rank") &&
                             Contains("all_reduce number 2 'loss': mismatch: rank 0 calls") &&
                             Contains("'all_reduce of 8 float 'loss'") && Contains("'all_reduce of 9 float 'loss'"));
  }
  const auto messages = errors_of_two(
      [](thread_communicator&, auto& gpus) {
        using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
        if (gpus.rank() == 0) gpus.send(zeros<float, D>({3}), 1, 4).get();
        else gpus.template receive<float>(3, 0, 5).get();
        gpus.barrier().get();
      },
      {.timeout = 300ms});
  CHECK(messages[1].kind() == communication_failure::mismatch);
  CHECK_THAT(messages[1].what(), Contains("receive: mismatch: rank 0 calls send of 3 float with tag 4, and rank 1 "
                                          "calls receive of 3 float with tag 5"));
}

TEST_CASE_METHOD(on_fake_gpus, "a rank that does not come to a call over NCCL is named") {
  std::atomic<bool> late{false};
  const auto errors = errors_of_two(
      [&](thread_communicator&, auto& gpus) {
        using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
        if (gpus.rank() == 1)
          while (!late) std::this_thread::yield();
        try {
          gpus.all_reduce(zeros<float, D>({8}), reduction::sum, "bucket 0").get();
        } catch (...) {
          late = true;
          throw;
        }
      },
      {.timeout = 200ms, .checked_calls = GENERATE(0, 100)});
  CHECK(errors[0].kind() == communication_failure::timeout);
  CHECK(errors[0].peer() == 1);
  CHECK_THAT(errors[0].what(), Contains("all_reduce number 1 'bucket 0': timeout: waited for rank 1 in vain"));
  CHECK(fake_nccl::take_ended().aborted == 2);
}

TEST_CASE_METHOD(on_fake_gpus, "work on a GPU that does not end is a timeout, and its memory is never given back") {
  fake_nccl::hold_work(1, true);
  std::atomic<int> kept{0};
  const auto errors = errors_of_two(
      [&](thread_communicator&, auto& gpus) {
        using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
        const auto before = memory<D>().bytes_in_use;
        try {
          gpus.all_reduce(zeros<float, D>({5000})).get(0.2);
        } catch (...) {
          kept += memory<D>().bytes_in_use >= before + 5000 * sizeof(float);
          throw;
        }
      },
      {.timeout = 20s, .checked_calls = 0});
  fake_nccl::hold_work(1, false);
  CHECK(kept == 2);
  CHECK(fake_nccl::take_ended().aborted == 2);
  for (const communication_error& e : errors) {
    CHECK((e.kind() == communication_failure::timeout || e.kind() == communication_failure::aborted));
    CHECK_THAT(e.what(), Contains("timeout: all ranks made the call, and NCCL has not ended it"));
  }
}

TEST_CASE_METHOD(on_fake_gpus, "an error of NCCL ends the calls of all ranks") {
  const auto errors = errors_of_two(
      [](thread_communicator&, auto& gpus) {
        using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
        gpus.barrier().get();
        if (gpus.rank() == 1) fake_nccl::fail_soon(1, ncclRemoteError);
        gpus.all_reduce(zeros<float, D>({8}), reduction::sum, "a").get();
        gpus.barrier("b").get();
      },
      {.timeout = 300ms});
  CHECK(errors[1].kind() == communication_failure::backend);
  CHECK_THAT(errors[1].what(), Contains("NCCL: an NCCL error of the test (more of it)"));
  CHECK(errors[0].kind() == communication_failure::aborted);
  CHECK(errors[0].peer() == 1);
  CHECK_THAT(errors[0].what(), Contains("aborted by rank 1: NCCL: an NCCL error of the test"));
  CHECK(fake_nccl::take_ended().aborted == 2);
}

TEST_CASE_METHOD(on_fake_gpus, "any call of CUDA and NCCL that fails in a call over NCCL ends it on all ranks") {
  const std::string function =
      GENERATE(as<std::string>(), "ncclGroupEnd", "ncclAllReduce", "cudaEventRecord", "cudaStreamWaitEvent",
               "cudaEventCreateWithFlags", "ncclCommGetAsyncError", "cudaEventQuery");
  const auto errors = errors_of_two(
      [&](thread_communicator& world, auto& gpus) {
        using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
        const auto x = zeros<float, D>({8});
        gpus.all_reduce(x).get();
        world.barrier().get();
        if (gpus.rank() == 0) fake_cuda::plan({.function = function});
        world.barrier().get();
        gpus.all_reduce(x).get();
        gpus.barrier("next").get();
      },
      {.timeout = 300ms});
  CHECK(fake_cuda::end_plan() == function);
  const int bad = errors[0].kind() == communication_failure::backend ? 0 : 1;
  CHECK(errors[std::size_t(bad)].kind() == communication_failure::backend);
  CHECK(errors[std::size_t(1 - bad)].kind() == communication_failure::aborted);
  CHECK(errors[std::size_t(1 - bad)].peer() == bad);
}

TEST_CASE_METHOD(on_fake_gpus, "a rank gives up, by abort and by an exception, and the others know why") {
  const bool by_exception = GENERATE(false, true);
  std::atomic<bool> told{false};
  try {
    run_gpus(2, [&](thread_communicator&, auto& gpus) {
      using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
      gpus.barrier().get();
      if (gpus.rank() == 1) {
        if (by_exception) throw std::runtime_error("no more samples");
        gpus.abort("no more samples");
        const communication_error own = communicator_checks::error_of([&] { gpus.barrier().get(); });
        require_text(own, "communicator (nccl), rank 1 of 2: aborted by rank 1: no more samples");
        return;
      }
      const communication_error e =
          communicator_checks::error_of([&] { gpus.all_reduce(zeros<float, D>({8}), reduction::sum, "a").get(); });
      told = e.kind() == communication_failure::aborted && e.peer() == 1 &&
             has(e, by_exception ? "aborted by rank 1: an exception left the block of its communicator"
                                 : "all_reduce number 2 'a': aborted by rank 1: no more samples");
    });
  } catch (const std::runtime_error& e) {
    CHECK(by_exception);
    CHECK_THAT(e.what(), Contains("no more samples"));
  }
  CHECK(told);
  CHECK(fake_nccl::take_ended().aborted == 2);
}

TEST_CASE_METHOD(on_fake_gpus, "a communicator over NCCL that cannot begin says why, on all ranks") {
  std::mutex mutex;
  std::vector<std::string> said(2);
  const auto begin = [&](auto f, double seconds) {
    run_ranks(2, {.timeout = std::chrono::duration<double>(seconds)}, [&](thread_communicator world) {
      try {
        f(world);
      } catch (const error& e) {
        const std::lock_guard lock(mutex);
        said[std::size_t(world.rank())] = e.what();
      }
    });
    CHECK(fake_nccl::living() == 0);
  };
  begin([](thread_communicator& world) { on_gpu<0>(world, {.timeout = 5s}); }, 20);
  for (const std::string& one : said)
    CHECK_THAT(one, Contains("communicator (nccl), rank") && Contains("beginning: ") &&
                        Contains("NCCL: an NCCL error of the test"));
  begin(
      [](thread_communicator& world) {
        if (world.rank() == 0) on_gpu<0>(world, {.timeout = 5s});
        else on_gpu<7>(world, {.timeout = 5s});
      },
      20);
  CHECK_THAT(said[0], Contains("beginning: aborted by rank 1: cuda:7 is not available"));
  CHECK_THAT(said[1], Contains("cuda:7 is not available"));
  said[1].clear();
  begin(
      [](thread_communicator& world) {
        if (world.rank() == 0) on_gpu<0>(world, {.timeout = 100ms});
        else std::this_thread::sleep_for(500ms);
      },
      0.2);
  CHECK_THAT(said[0], Contains("timeout: waited for rank 1 in vain"));
}

TEST_CASE_METHOD(on_fake_gpus, "a call over NCCL is refused while a step is captured, and for wrong tensors") {
  run_gpus(2, [](thread_communicator&, auto& gpus) {
    using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
    const auto x = zeros<float, D>({4, 2});
    const auto says = [](const auto& f, const std::string& text) {
      require(error_of(f).find(text) != std::string::npos, text);
    };
    if (gpus.rank() == 0)
      says([&] { capture<D>([&] { gpus.all_reduce(x.flatten()).get(); }, 0); }, "a graph holds the work of one device");
    says([&] { gpus.all_reduce(x.slice(1, 0, 1).reshape({4}).slice(0, 0, 4, 2)).get(); }, "call contiguous() first");
    says([&] { gpus.reduce_scatter(zeros<float, D>({3})).get(); }, "3 elements are not 2 equal parts");
    says([&] { gpus.broadcast(x.flatten(), 2).get(); }, "there is no rank 2 among 2");
    says([&] { gpus.split(-1, 0); }, "it must not be negative");
    gpus.all_reduce(x.flatten()).get();
  });
}

TEST_CASE_METHOD(on_fake_gpus, "a model partly on a GPU and partly on the host is trained over NCCL and the host") {
  const auto alone = plain_model<numa<0>>(1);
  const auto [x, y] = samples(0, 1);
  const variable whole = cross_entropy(alone(x.to<numa<0>>()), y);
  whole.backward();
  const values expected = gradients(alone);

  std::mutex mutex;
  std::vector<values> first(2), second(2), buffers(2);
  run_gpus(2, [&](thread_communicator& world, auto& gpus) {
    using D = gpu_of<std::remove_reference_t<decltype(gpus)>>;
    const auto seed = static_cast<std::uint64_t>(world.rank() + 1);  // rank 1 takes over the values of rank 0
    auto plain = plain_model<D>(seed);
    auto normed = model_with_norm<D>(seed);
    const auto [mine, labels] = samples(world.rank(), 2);
    const auto there = mine.template to<D>();
    nn::distributed both(plain, world, gpus);
    nn::distributed both_normed(normed, world, gpus);
    const variable loss = cross_entropy(plain(there), labels);
    both.backward(loss, labels.extent(0));
    const variable with_norm = cross_entropy(normed(there), labels);
    both_normed.backward(with_norm, labels.extent(0));
    values kept;
    normed.for_each_buffer(
        [&](const std::string& name, const auto& b) { kept[name] = flat_values(nn::detail::stored_value(b)); });
    const std::lock_guard lock(mutex);
    const auto r = static_cast<std::size_t>(world.rank());
    first[r] = gradients(plain);
    second[r] = gradients(normed);
    buffers[r] = kept;
  });
  for (const values& seen : first) {
    REQUIRE(seen.size() == expected.size());
    for (const auto& [name, gradient] : expected)
      for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(seen.at(name)[i] == Approx(gradient[i]).margin(1e-5));
  }
  CHECK(second[0].size() == 6);
  CHECK(second[0] == second[1]);
  CHECK(buffers[0].size() >= 2);
  CHECK(buffers[0] == buffers[1]);
}
