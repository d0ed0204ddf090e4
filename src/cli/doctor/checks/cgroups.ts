import type { Machine } from '../check.ts';
import { type Check, type Observation, ok } from '../check.ts';

interface CgroupMount {
  readonly path: string;
  readonly version: 'v1' | 'v2';
  readonly options: readonly string[];
  readonly access: 'rw' | 'ro';
}

/**
 * Parses the cgroup mounts of /proc/self/mountinfo. The fields after " - " are type, source and
 * options of the file system.
 */
function cgroupMounts(mountinfo: string): readonly CgroupMount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [left = '', right = ''] = line.split(' - ');
    const [type = '', , options = ''] = right.split(' ');
    const fields = left.split(' ');
    if (type !== 'cgroup' && type !== 'cgroup2') return [];
    return [
      {
        path: fields[4] ?? '',
        version: type === 'cgroup2' ? 'v2' : 'v1',
        options: options.split(','),
        access: (fields[5] ?? '').split(',').includes('ro') ? 'ro' : 'rw',
      },
    ];
  });
}

type Tree =
  | { readonly kind: 'v2'; readonly controllers: readonly string[] }
  | { readonly kind: 'v1' | 'hybrid'; readonly controllers: readonly string[] }
  | { readonly kind: 'none' };

const v1Controllers = [
  'cpu',
  'cpuacct',
  'cpuset',
  'memory',
  'pids',
  'blkio',
  'devices',
  'freezer',
  'hugetlb',
];

async function readTree(machine: Machine, mounts: readonly CgroupMount[]): Promise<Tree> {
  const unified = mounts.find((mount) => mount.version === 'v2');
  const singles = v1Controllers.filter((name) =>
    mounts.some((mount) => mount.version === 'v1' && mount.options.includes(name)),
  );
  if (singles.length > 0) return { kind: unified === undefined ? 'v1' : 'hybrid', controllers: singles };
  if (unified === undefined) return { kind: 'none' };
  const text = (await machine.readText(`${unified.path}/cgroup.controllers`)) ?? '';
  return { kind: 'v2', controllers: text.trim().split(/\s+/) };
}

/**
 * The cgroup controllers without which the check fails, each with what does not work without it.
 */
const requiredControllers: Readonly<Record<string, string>> = {
  cpu: 'CPU requests and limits',
  memory: 'memory limits',
  cpuset: 'CPU pinning',
};
const recommendedControllers: Readonly<Record<string, string>> = { pids: 'limits on processes' };

export const cgroups: Check = {
  name: 'cgroups',
  observe: async ({ machine }) => {
    const mounts = cgroupMounts((await machine.readText('/proc/self/mountinfo')) ?? '');
    const tree = await readTree(machine, mounts);
    if (tree.kind === 'none') return [noCgroups];
    const list = tree.controllers.join(' ');
    return [
      tree.kind === 'v2' ? ok(`v2 with ${list}`) : observeV1(tree.kind, list),
      ...observeControllers(tree.controllers),
      ...observeReadOnly(mounts),
    ];
  },
};

const noCgroups: Observation = {
  severity: 'fail',
  finding: 'no cgroup file system is mounted',
  consequence: 'the runtime cannot start any container',
  advice: 'mount -t cgroup2 none /sys/fs/cgroup, or start this container with its cgroup namespace',
};

function observeV1(kind: 'v1' | 'hybrid', controllers: string): Observation {
  return {
    severity: 'note',
    finding: `${kind === 'v1' ? 'v1' : 'v1 beside v2 (hybrid)'}: ${controllers}`,
    consequence:
      'pods run, with the cgroupfs driver; but without swap (LimitedSwap), memory QoS and pressure metrics, ' +
      'and an OOM kills one process instead of the whole container (no memory.oom.group). ' +
      'kubeling supports v1; the Go kubelet rejects it by default since 1.35',
    advice: 'boot with cgroup v2 if possible: systemd.unified_cgroup_hierarchy=1, cgroup_no_v1=all',
  };
}

function observeControllers(found: readonly string[]): readonly Observation[] {
  const lost = (table: Readonly<Record<string, string>>) =>
    Object.entries(table).filter(([name]) => !found.includes(name));
  const observe =
    (severity: 'warn' | 'fail') =>
    ([name, what]: readonly [string, string]): Observation => ({
      severity,
      finding: `controller ${name} is missing`,
      consequence: `no ${what}`,
      advice:
        name === 'memory'
          ? 'boot with cgroup_enable=memory (it is off by default on the Raspberry Pi)'
          : `enable the controller ${name} in this machine's kernel or container`,
    });
  return [
    ...lost(requiredControllers).map(observe('fail')),
    ...lost(recommendedControllers).map(observe('warn')),
  ];
}

function observeReadOnly(mounts: readonly CgroupMount[]): readonly Observation[] {
  const paths = mounts.filter((mount) => mount.access === 'ro').map((mount) => mount.path);
  if (paths.length === 0) return [];
  return [
    {
      severity: 'fail',
      finding: `mounted read-only: ${paths.join(', ')}`,
      consequence: 'no cgroup can be created for pods',
      advice: 'mount it read-write; inside a container this takes a privileged one',
    },
  ];
}

export const systemd: Check = {
  name: 'systemd',
  observe: async ({ machine }) => {
    if ((await machine.kindOf('/run/systemd/system')) === 'directory') {
      return [
        ok('runs here; with cgroups v2, configure runtime and kubelet to use the systemd cgroup driver'),
      ];
    }
    return [
      {
        severity: 'note',
        finding: 'does not run here',
        consequence:
          'the cgroup driver is cgroupfs; no graceful node shutdown through logind, no watchdog, ' +
          'no readiness notification, and kubeling is not restarted after a crash',
        advice: 'let another supervisor restart kubeling',
      },
    ];
  },
};
