import { type Check, type Observation, ok } from '../check.ts';

type Weight = 'fail' | 'warn' | 'note';

interface Capability {
  readonly bit: number;
  readonly name: string;
  readonly weight: Weight;
  readonly without: string;
}

const inContainers = 'containers that ask for it, as most do by default, cannot start or lack it';

/** Bits as the kernel numbers them. Those not listed matter only to privileged pods. */
const capabilities: readonly Capability[] = [
  { bit: 0, name: 'CHOWN', weight: 'fail', without: 'files of volumes and images cannot get their owners' },
  { bit: 1, name: 'DAC_OVERRIDE', weight: 'fail', without: 'files of other users cannot be reached' },
  { bit: 3, name: 'FOWNER', weight: 'fail', without: 'modes of files of other users cannot be set' },
  { bit: 5, name: 'KILL', weight: 'fail', without: 'containers of other users cannot be stopped' },
  { bit: 6, name: 'SETGID', weight: 'fail', without: 'containers cannot run with their group' },
  { bit: 7, name: 'SETUID', weight: 'fail', without: 'containers cannot run as their user' },
  { bit: 8, name: 'SETPCAP', weight: 'fail', without: 'containers cannot be confined to few capabilities' },
  { bit: 12, name: 'NET_ADMIN', weight: 'fail', without: 'pods get no network' },
  { bit: 13, name: 'NET_RAW', weight: 'warn', without: inContainers },
  { bit: 18, name: 'SYS_CHROOT', weight: 'fail', without: 'containers cannot get a root file system' },
  {
    bit: 19,
    name: 'SYS_PTRACE',
    weight: 'warn',
    without: 'namespaces of pods cannot be entered (port-forward)',
  },
  { bit: 21, name: 'SYS_ADMIN', weight: 'fail', without: 'no mounts and no namespaces, so no containers' },
  { bit: 27, name: 'MKNOD', weight: 'warn', without: inContainers },
  { bit: 29, name: 'AUDIT_WRITE', weight: 'warn', without: inContainers },
  { bit: 31, name: 'SETFCAP', weight: 'warn', without: inContainers },
  {
    bit: 24,
    name: 'SYS_RESOURCE',
    weight: 'note',
    without:
      'oom_score_adj cannot be lowered: Guaranteed pods and sandboxes start only if the runtime clamps it ' +
      '(restrict_oom_score_adj = true in containerd; kubeling sets that for its own), and limits cannot be raised',
  },
  { bit: 34, name: 'SYSLOG', weight: 'note', without: 'the kernel log may be closed to us' },
];

const advice: Readonly<Record<Weight, string>> = {
  fail: 'give kubeling all capabilities: run it as real root, or in a privileged container',
  warn: 'add it to those of the container or unit that kubeling runs in',
  note: 'add it to those of the container or unit that kubeling runs in, or live with it',
};

export const capabilitiesCheck: Check = {
  name: 'capabilities',
  look: async ({ machine }) => {
    const status = (await machine.readText('/proc/self/status')) ?? '';
    const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1];
    if (mask === undefined) throw new Error('/proc/self/status does not tell');
    const effective = BigInt(`0x${mask}`);
    if (effective === 0n) return [noneAtAll];
    const missing = capabilities.filter(({ bit }) => ((effective >> BigInt(bit)) & 1n) === 0n);
    if (missing.length === 0) return [ok('all that are needed')];
    return missing.map(observe);
  },
};

const noneAtAll: Observation = {
  severity: 'fail',
  finding: 'none, like any ordinary user',
  consequence: 'no mounts, no namespaces and no network, so no containers',
  advice: advice.fail,
};

function observe(capability: Capability): Observation {
  return {
    severity: capability.weight,
    finding: `CAP_${capability.name} is missing`,
    consequence: capability.without,
    advice: advice[capability.weight],
  };
}
