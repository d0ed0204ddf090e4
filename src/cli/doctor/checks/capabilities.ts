import { type Check, type Observation, ok } from '../check.ts';

type Weight = 'fail' | 'warn' | 'note';

interface Capability {
  readonly bit: number;
  readonly name: string;
  readonly weight: Weight;
  readonly without: string;
}

const inContainers = 'containers that request it, as most do by default, do not start or lack it';

/**
 * The capabilities that are checked, with their bit numbers. Capabilities that are not listed
 * matter to privileged pods only.
 */
const capabilities: readonly Capability[] = [
  { bit: 0, name: 'CHOWN', weight: 'fail', without: 'owners of files in volumes and images cannot be set' },
  { bit: 1, name: 'DAC_OVERRIDE', weight: 'fail', without: 'files of other users cannot be accessed' },
  { bit: 3, name: 'FOWNER', weight: 'fail', without: "modes of other users' files cannot be changed" },
  { bit: 5, name: 'KILL', weight: 'fail', without: 'containers that run as other users cannot be stopped' },
  { bit: 6, name: 'SETGID', weight: 'fail', without: 'containers cannot run with their group' },
  { bit: 7, name: 'SETUID', weight: 'fail', without: 'containers cannot run as their user' },
  { bit: 8, name: 'SETPCAP', weight: 'fail', without: 'containers cannot be restricted to few capabilities' },
  { bit: 12, name: 'NET_ADMIN', weight: 'fail', without: 'pods have no network' },
  { bit: 13, name: 'NET_RAW', weight: 'warn', without: inContainers },
  { bit: 18, name: 'SYS_CHROOT', weight: 'fail', without: 'containers have no root file system' },
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
      '(restrict_oom_score_adj = true in containerd; the private containerd has it), and limits cannot be raised',
  },
  { bit: 34, name: 'SYSLOG', weight: 'note', without: 'the kernel log may be unreadable' },
];

const advice: Readonly<Record<Weight, string>> = {
  fail: 'give kubeling all capabilities: run it as real root, or in a privileged container',
  warn: 'add it to the capabilities of the container or unit that kubeling runs in',
  note: 'add it to the capabilities of the container or unit that kubeling runs in, or accept the limitation',
};

export const capabilitiesCheck: Check = {
  name: 'capabilities',
  observe: async ({ machine }) => {
    const status = (await machine.readText('/proc/self/status')) ?? '';
    const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1];
    if (mask === undefined) throw new Error('/proc/self/status has no capabilities');
    const effective = BigInt(`0x${mask}`);
    if (effective === 0n) return [noneAtAll];
    const missing = capabilities.filter(({ bit }) => ((effective >> BigInt(bit)) & 1n) === 0n);
    if (missing.length === 0) return [ok('all required capabilities are present')];
    return missing.map(observe);
  },
};

const noneAtAll: Observation = {
  severity: 'fail',
  finding: 'none, as for an ordinary user',
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
