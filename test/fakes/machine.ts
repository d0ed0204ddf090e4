import type { FileKind, Machine, RuntimeResponse, Space } from '../../src/cli/doctor/check.ts';
import { instant } from '../../src/lib/index.ts';

const gib = 2 ** 30;

/** The properties of a simulated machine. Files that are not listed do not exist. */
export interface MachineSketch {
  readonly platform: string;
  readonly arch: string;
  readonly nodeVersion: string;
  readonly kernelRelease: string;
  readonly uid: number;
  readonly now: number;
  /** The content of text files; for an Error, reading fails with it. */
  readonly files: Readonly<Record<string, string | Error>>;
  readonly directories: Readonly<Record<string, readonly string[]>>;
  readonly kinds: Readonly<Record<string, FileKind>>;
  /** The commands on the PATH with their output for --version. */
  readonly commands: Readonly<Record<string, string>>;
  readonly space: Space;
  /** The runtime endpoints that respond, or the errors they fail with. */
  readonly runtimes: Readonly<Record<string, RuntimeResponse | Error>>;
}

/**
 * A machine on which all checks pass: Debian 13, systemd, cgroups v2, containerd 2, everything
 * installed.
 */
export const healthy: MachineSketch = {
  platform: 'linux',
  arch: 'x64',
  nodeVersion: '26.10.0',
  kernelRelease: '6.12.48-amd64',
  uid: 0,
  now: Date.UTC(2026, 5, 1),
  files: {
    '/proc/self/mountinfo':
      '24 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n' +
      '30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n',
    '/sys/fs/cgroup/cgroup.controllers': 'cpuset cpu io memory hugetlb pids rdma misc\n',
    '/proc/self/status': 'Name:\tnode\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n',
    '/proc/self/limits': 'Limit  Soft  Hard  Units\nMax open files            1024      1048576     files\n',
    '/proc/filesystems': 'nodev\tsysfs\n\text4\nnodev\toverlay\n',
    '/proc/sys/user/max_user_namespaces': '63000\n',
    '/proc/sys/kernel/seccomp/actions_avail': 'kill_process allow\n',
    '/sys/module/apparmor/parameters/enabled': 'Y\n',
    '/proc/sys/net/bridge/bridge-nf-call-iptables': '1\n',
    '/proc/sys/net/ipv4/ip_forward': '1\n',
    '/proc/net/tcp': '  sl  local_address rem_address   st\n   0: 00000000:0016 00000000:0000 0A\n',
    '/proc/swaps': 'Filename\tType\tSize\tUsed\tPriority\n',
    '/proc/sys/fs/inotify/max_user_instances': '8192\n',
    '/proc/sys/fs/inotify/max_user_watches': '524288\n',
    '/etc/machine-id': '0123456789abcdef0123456789abcdef\n',
    '/dev/kmsg': '',
  },
  directories: {
    '/usr/lib/cni': ['bridge', 'host-local', 'loopback', 'portmap', 'tuning'],
    '/etc/cni/net.d': ['10-net.conflist'],
  },
  kinds: {
    '/run/systemd/system': 'directory',
    '/sys/module/bridge': 'directory',
    '/run/containerd/containerd.sock': 'socket',
    '/var/lib': 'directory',
    '/var/log': 'directory',
  },
  commands: {
    containerd: 'containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4',
    runc: 'runc version 1.3.0',
    iptables: 'iptables v1.8.11 (nf_tables)',
    ip: '',
    mount: '',
    umount: '',
    findmnt: '',
    nsenter: '',
    kubectl: '',
  },
  space: {
    type: 0xef53,
    totalBytes: 100 * gib,
    availableBytes: 60 * gib,
    totalInodes: 1_000_000,
    freeInodes: 900_000,
  },
  runtimes: { 'unix:///run/containerd/containerd.sock': { name: 'containerd', version: '2.1.4' } },
};

/** Builds a simulated machine with these properties. */
export function fakeMachine(sketch: MachineSketch): Machine {
  return {
    ...sketch,
    now: () => instant(sketch.now),
    readText: async (path) => orThrow(sketch.files[path]),
    list: async (path) => sketch.directories[path],
    kindOf: async (path) => sketch.kinds[path],
    tryOpen: async (path) => {
      if (orThrow(sketch.files[path]) === undefined) throw new Error(`ENOENT: no such file, open '${path}'`);
    },
    spaceAt: async () => sketch.space,
    findCommand: async (name) => (name in sketch.commands ? `/usr/bin/${name}` : undefined),
    run: async (file) => ({ code: 0, output: sketch.commands[file.replace('/usr/bin/', '')] ?? '' }),
    queryRuntime: async (endpoint) => orThrow(sketch.runtimes[endpoint]) ?? refused(endpoint),
  };
}

function orThrow<T>(value: T | Error): T {
  if (value instanceof Error) throw value;
  return value;
}

function refused(endpoint: string): never {
  throw new Error(`no process listens at ${endpoint}`);
}
