#include "backends/sim/native/cage.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sim {
namespace {

// The same on every architecture; the system's headers may be older than the kernel.
constexpr long kCloseRange = 436, kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
struct Ruleset {
  std::uint64_t files, network, scopes;
};
struct [[gnu::packed]] Beneath {
  std::uint64_t allowed;
  std::int32_t place;
};
constexpr std::uint64_t kReadFile = 1 << 2;

// The rights that ABI 1, 2, ... know.
std::uint64_t file_rights(long abi) {
  const int count = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13;
  return (std::uint64_t{1} << count) - 1;
}

void leave_files(const std::string& library) {
  const long abi = syscall(kCreateRuleset, nullptr, 0, 1);
  if (abi < 1) return;
  const Ruleset all{file_rights(abi), abi >= 4 ? 3u : 0u, abi >= 6 ? 3u : 0u};
  const std::size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
  const int rules = static_cast<int>(syscall(kCreateRuleset, &all, size, 0));
  if (rules < 0) return;
  const int place = open(library.c_str(), O_PATH | O_CLOEXEC);
  if (place >= 0) {
    const Beneath one{kReadFile, place};
    syscall(kAddRule, rules, 1, &one, 0);
    close(place);
  }
  syscall(kRestrictSelf, rules, 0);
  close(rules);
}

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;  // none is known: no filter
#endif

constexpr int kAllowed[] = {
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_futex,
    SYS_openat, SYS_read, SYS_pread64, SYS_fstat, SYS_newfstatat, SYS_close, SYS_lseek,
    SYS_write, SYS_writev, SYS_recvfrom, SYS_sendto,
    SYS_rt_sigreturn, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_sigaltstack,
    SYS_getpid, SYS_gettid, SYS_exit, SYS_exit_group, SYS_getrandom,
};

void leave_calls() {
  if (kArchitecture == 0) return;
  const auto load = [](std::size_t at) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(at));
  };
  const auto answer = [](std::uint32_t value) { return sock_filter BPF_STMT(BPF_RET | BPF_K, value); };
  const auto unless = [](std::uint32_t value, std::uint8_t skipped) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
  };
  const sock_filter allow = answer(SECCOMP_RET_ALLOW);
  const sock_filter refuse = answer(SECCOMP_RET_ERRNO | EPERM);
  std::vector<sock_filter> steps{
      load(offsetof(seccomp_data, arch)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0), refuse,
      load(offsetof(seccomp_data, nr))};
  for (const int number : kAllowed) {
    steps.push_back(unless(static_cast<std::uint32_t>(number), 1));
    steps.push_back(allow);
  }
  // A signal to itself, as of abort().
  steps.push_back(unless(SYS_tgkill, 3));
  steps.push_back(load(offsetof(seccomp_data, args)));
  steps.push_back(unless(static_cast<std::uint32_t>(getpid()), 1));
  steps.push_back(allow);
  steps.push_back(refuse);
  const sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

void leave_open_files(int socket) {
  const auto own = static_cast<unsigned>(socket);
  if (syscall(kCloseRange, own + 1, ~0u, 0) == 0 &&
      (own <= 3 || syscall(kCloseRange, 3u, own - 1, 0) == 0))
    return;
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  const int end = most.rlim_cur > 65536 ? 65536 : static_cast<int>(most.rlim_cur);
  for (int file = 3; file < end; ++file)
    if (file != socket) close(file);
}

}  // namespace

void shut_in(const std::string& library, int socket) {
  leave_open_files(socket);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  leave_files(library);
  leave_calls();
}

}  // namespace sim
