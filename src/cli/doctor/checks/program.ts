import { type Check, isAtLeast, type Observation, ok } from '../check.ts';

export const node: Check = {
  name: 'node',
  observe: async ({ machine }) => [
    isAtLeast(machine.nodeVersion, [24, 15])
      ? ok(`Node.js ${machine.nodeVersion}`)
      : {
          severity: 'fail',
          finding: `Node.js ${machine.nodeVersion} is too old`,
          consequence: 'kubeling needs 24.15 or newer: it runs TypeScript from source and uses node:sqlite',
          advice: 'run "node scripts/setup.mjs", which installs the pinned Node.js, and start ./kubeling',
        },
  ],
};

export const architecture: Check = {
  name: 'architecture',
  observe: async ({ machine }) => {
    const known = machine.arch === 'x64' || machine.arch === 'arm64';
    if (machine.platform === 'linux' && known) return [ok(`${machine.platform}/${machine.arch}`)];
    const finding = `${machine.platform}/${machine.arch}`;
    if (machine.platform !== 'linux') {
      return [
        {
          severity: 'fail',
          finding,
          consequence: 'pods need the namespaces and cgroups of Linux',
          advice: 'use a machine, or a virtual machine, with Linux',
        },
      ];
    }
    return [
      {
        severity: 'warn',
        finding,
        consequence: 'kubeling is tested on x64 and arm64 only',
        advice: 'provide your own Node.js and set KUBELING_NODE to its path',
      },
    ];
  },
};

export const root: Check = {
  name: 'root',
  observe: async ({ machine }) => [
    machine.uid === 0
      ? ok('runs as root')
      : {
          severity: 'fail',
          finding: `runs as user ${machine.uid}`,
          consequence: 'mounts, namespaces, cgroups and the runtime socket require root',
          advice: 'run kubeling as root: sudo ./kubeling …; some checks below are incomplete without it',
        },
  ],
};

const firstSaneYear = 2025;
const lastSaneYear = 2100;

export const clock: Check = {
  name: 'clock',
  observe: async ({ machine }) => {
    const date = new Date(machine.now());
    const year = date.getUTCFullYear();
    if (year >= firstSaneYear && year <= lastSaneYear) return [ok(`${date.toISOString().slice(0, 16)}Z`)];
    return [
      {
        severity: 'fail',
        finding: `the clock shows ${date.toISOString().slice(0, 10)}`,
        consequence: 'certificates look expired or not yet valid, so TLS connections fail',
        advice: 'set the clock (date -s …) and run a time service such as chrony or systemd-timesyncd',
      },
    ];
  },
};

export const machineId: Check = {
  name: 'machine id',
  observe: async ({ machine }) => {
    for (const path of ['/etc/machine-id', '/var/lib/dbus/machine-id']) {
      const text = (await machine.readText(path))?.trim();
      if (text !== undefined && /^[0-9a-f]{32}$/.test(text)) return [ok(`${path}`)];
    }
    return [
      {
        severity: 'note',
        finding: 'no machine id',
        consequence:
          'the node is reported with an empty machineID, which some monitoring uses to tell nodes apart',
        advice: 'systemd-machine-id-setup, or dbus-uuidgen --ensure=/etc/machine-id',
      },
    ];
  },
};

const manyFiles = 65_536;
const fewFiles = 4_096;

export const openFiles: Check = {
  name: 'open files',
  observe: async ({ machine }) => {
    const limits = await machine.readText('/proc/self/limits');
    const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(limits ?? '')?.[1];
    if (hard === undefined) throw new Error('/proc/self/limits has no "Max open files"');
    const limit = hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
    return [observeOpenFiles(limit)];
  },
};

function observeOpenFiles(limit: number): Observation {
  if (limit >= manyFiles) return ok(`up to ${limit}`);
  return {
    severity: limit < fewFiles ? 'warn' : 'note',
    finding: `at most ${limit} open files`,
    consequence:
      'kubeling and the private containerd cannot open more files each; Kubernetes recommends 1000000',
    advice: 'raise the limit where kubeling is started: ulimit -Hn, or LimitNOFILE= in its unit',
  };
}

interface Tool {
  readonly name: string;
  readonly severity: 'warn' | 'fail';
  readonly without: string;
  readonly package: string;
}

const tools: readonly Tool[] = [
  { name: 'mount', severity: 'fail', without: 'volumes cannot be mounted', package: 'mount' },
  { name: 'umount', severity: 'fail', without: 'volumes cannot be unmounted', package: 'mount' },
  {
    name: 'findmnt',
    severity: 'warn',
    without: 'mounts of volumes are harder to inspect',
    package: 'util-linux',
  },
  {
    name: 'nsenter',
    severity: 'warn',
    without: 'namespaces of pods cannot be entered',
    package: 'util-linux',
  },
];

export const mountTools: Check = {
  name: 'mount tools',
  observe: async ({ machine }) => {
    const paths = await Promise.all(tools.map(({ name }) => machine.findCommand(name)));
    const missing = tools.filter((_, index) => paths[index] === undefined);
    if (missing.length === 0) return [ok(tools.map(({ name }) => name).join(', '))];
    return missing.map(
      (tool): Observation => ({
        severity: tool.severity,
        finding: `the command ${tool.name} is missing`,
        consequence: tool.without,
        advice: `apt-get install ${tool.package}`,
      }),
    );
  },
};

export const kubectl: Check = {
  name: 'kubectl',
  observe: async ({ machine }) => {
    const path = await machine.findCommand('kubectl');
    if (path !== undefined) return [ok(path)];
    return [
      {
        severity: 'note',
        finding: 'not installed',
        consequence: 'kubeling does not need it, but you need it to talk to a cluster',
      },
    ];
  },
};
