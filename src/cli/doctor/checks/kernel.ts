import type { Machine } from '../check.ts';
import { type Check, type CheckTarget, isAtLeast, type Observation, ok } from '../check.ts';

/** Kernel features, each with the first kernel version that has it, newest version first. */
const kernelSteps: readonly { readonly before: readonly [number, number]; readonly lacks: string }[] = [
  { before: [6, 4], lacks: 'tmpfs without swap' },
  { before: [6, 3], lacks: 'pods with hostUsers: false' },
  { before: [5, 12], lacks: 'recursive read-only mounts' },
  { before: [4, 20], lacks: 'pressure stall information' },
];

export const kernel: Check = {
  name: 'kernel',
  observe: async ({ machine }) => [observeKernel(machine.kernelRelease)],
};

function observeKernel(release: string): Observation {
  if (!isAtLeast(release, [4, 19])) {
    return {
      severity: 'warn',
      finding: `Linux ${release}`,
      consequence: 'older than 4.19, the oldest kernel that Kubernetes supports',
      advice: 'use a newer kernel',
    };
  }
  const lacking = kernelSteps.filter((step) => !isAtLeast(release, step.before));
  if (lacking.length === 0) return ok(`Linux ${release}`);
  return {
    severity: 'note',
    finding: `Linux ${release}`,
    consequence: `this kernel has no ${lacking.map((step) => step.lacks).join(', no ')}`,
  };
}

export const overlay: Check = {
  name: 'overlayfs',
  observe: async ({ machine }) => {
    const known = /^(?:nodev)?[ \t]*overlay$/m.test((await machine.readText('/proc/filesystems')) ?? '');
    if (known) return [ok('in the kernel')];
    if (await hasModule(machine, 'overlay')) return [ok('can be loaded as a module')];
    return [
      {
        severity: 'warn',
        finding: 'missing in this kernel',
        consequence: 'the runtime must copy every layer of an image, which is slow and needs much disk space',
        advice: 'use a kernel with CONFIG_OVERLAY_FS, or a runtime with another snapshotter',
      },
    ];
  },
};

/** Whether the kernel module is loaded, built in, or available for this kernel. */
async function hasModule(machine: Machine, name: string): Promise<boolean> {
  if ((await machine.kindOf(`/sys/module/${name}`)) !== undefined) return true;
  const directory = `/lib/modules/${machine.kernelRelease}`;
  for (const list of ['modules.builtin', 'modules.dep']) {
    if (((await machine.readText(`${directory}/${list}`)) ?? '').includes(`/${name}.ko`)) return true;
  }
  return false;
}

export const userNamespaces: Check = {
  name: 'user namespaces',
  observe: async ({ machine }) => {
    const limit = await machine.readText('/proc/sys/user/max_user_namespaces');
    if (limit !== undefined && Number(limit) > 0) return [ok(`up to ${limit.trim()}`)];
    return [
      {
        severity: 'note',
        finding: limit === undefined ? 'missing in this kernel' : 'turned off',
        consequence: 'pods with hostUsers: false cannot run',
        ...(limit === undefined ? {} : { advice: 'sysctl user.max_user_namespaces=15000' }),
      },
    ];
  },
};

const bridgeFilter = '/proc/sys/net/bridge/bridge-nf-call-iptables';

export const bridge: Check = {
  name: 'bridge',
  observe: async ({ machine }) => {
    if (!(await hasModule(machine, 'bridge'))) {
      return [
        {
          severity: 'warn',
          finding: 'this kernel has no network bridges',
          consequence: 'the bridge network of "kubeling up" cannot be created',
          advice: 'modprobe bridge, or use a CNI plugin that needs no bridge',
        },
      ];
    }
    const filter = (await machine.readText(bridgeFilter))?.trim();
    if (filter === '1') return [ok('bridged traffic passes through iptables')];
    return [
      {
        severity: 'note',
        finding:
          filter === undefined ? 'module br_netfilter is not loaded' : 'bridged traffic bypasses iptables',
        consequence: 'kube-proxy and network policies do not apply to traffic between two pods of this node',
        advice:
          'modprobe br_netfilter && sysctl net.bridge.bridge-nf-call-iptables=1 (not needed without a cluster)',
      },
    ];
  },
};

export const forwarding: Check = {
  name: 'ip forwarding',
  observe: async ({ machine }) => {
    const value = (await machine.readText('/proc/sys/net/ipv4/ip_forward'))?.trim();
    if (value === '1') return [ok('on')];
    return [
      {
        severity: 'note',
        finding: 'off',
        consequence:
          'pods reach nothing outside the node until it is enabled; the bridge plugin enables it with the first pod',
        advice: 'sysctl net.ipv4.ip_forward=1, if you use other CNI plugins',
      },
    ];
  },
};

export const seccomp: Check = {
  name: 'seccomp',
  observe: async ({ machine }) => {
    const actions = await machine.readText('/proc/sys/kernel/seccomp/actions_avail');
    const status = (await machine.readText('/proc/self/status')) ?? '';
    if (actions !== undefined || /^Seccomp:/m.test(status)) return [ok('available')];
    return [
      {
        severity: 'warn',
        finding: 'missing in this kernel',
        consequence: 'pods with a seccomp profile, including RuntimeDefault, do not start',
        advice: 'use a kernel with CONFIG_SECCOMP_FILTER',
      },
    ];
  },
};

export const securityModules: Check = {
  name: 'security modules',
  observe: async ({ machine }) => {
    const appArmor = (await machine.readText('/sys/module/apparmor/parameters/enabled'))?.trim() === 'Y';
    const enforce = (await machine.readText('/sys/fs/selinux/enforce'))?.trim();
    const seLinux =
      enforce === undefined ? [] : [`SELinux (${enforce === '1' ? 'enforcing' : 'permissive'})`];
    if (appArmor) return [ok(['AppArmor', ...seLinux].join(', '))];
    return [
      {
        severity: 'note',
        finding: [...seLinux, 'no AppArmor'].join(', '),
        consequence: 'pods with an AppArmor profile are rejected; all others run',
      },
    ];
  },
};

export const kernelLog: Check = {
  name: 'kernel log',
  observe: async ({ machine }) => {
    try {
      await machine.tryOpen('/dev/kmsg');
      return [ok('/dev/kmsg is readable')];
    } catch (error) {
      return [
        {
          severity: 'note',
          finding: `/dev/kmsg cannot be read: ${error instanceof Error ? error.message : String(error)}`,
          consequence: 'the node reports no SystemOOM events when the machine runs out of memory',
        },
      ];
    }
  },
};

const fewInstances = 512;
const fewWatches = 16_384;

export const inotify: Check = {
  name: 'inotify',
  observe: async ({ machine }) => {
    const instances = await readNumber(machine, 'max_user_instances');
    const watches = await readNumber(machine, 'max_user_watches');
    const finding = `${instances} instances, ${watches} watches per user`;
    if (instances >= fewInstances && watches >= fewWatches) return [ok(finding)];
    return [
      {
        severity: 'note',
        finding,
        consequence:
          'pods that run as root share these; with many file watchers some get "too many open files"',
        advice: 'sysctl fs.inotify.max_user_instances=8192 fs.inotify.max_user_watches=524288',
      },
    ];
  },
};

async function readNumber(machine: Machine, name: string): Promise<number> {
  const path = `/proc/sys/fs/inotify/${name}`;
  const text = await machine.readText(path);
  if (text === undefined) throw new Error(`there is no ${path}`);
  return Number(text);
}

export const swap: Check = {
  name: 'swap',
  observe: async ({ machine }: CheckTarget) => {
    const devices = ((await machine.readText('/proc/swaps')) ?? '')
      .split('\n')
      .slice(1)
      .map((line) => line.split(/\s/)[0] ?? '')
      .filter((name) => name !== '');
    if (devices.length === 0) return [ok('none')];
    return [
      {
        severity: 'warn',
        finding: `on: ${devices.join(', ')}`,
        consequence:
          'memory limits are less effective; kubeling up starts all the same, but kubeling run fails with the default failSwapOn: true',
        advice:
          'swapoff -a and remove it from /etc/fstab, or set failSwapOn: false in the kubelet configuration',
      },
    ];
  },
};
