import { type Check, type Observation, ok } from '../check.ts';

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
    without: 'mounts of volumes are harder to look at',
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
  look: async ({ machine }) => {
    const paths = await Promise.all(tools.map(({ name }) => machine.findCommand(name)));
    const missing = tools.filter((_, index) => paths[index] === undefined);
    if (missing.length === 0) return [ok(tools.map(({ name }) => name).join(', '))];
    return missing.map(
      (tool): Observation => ({
        severity: tool.severity,
        finding: `no command ${tool.name}`,
        consequence: tool.without,
        advice: `apt-get install ${tool.package}`,
      }),
    );
  },
};

export const kubectl: Check = {
  name: 'kubectl',
  look: async ({ machine }) => {
    const path = await machine.findCommand('kubectl');
    if (path !== undefined) return [ok(path)];
    return [
      {
        severity: 'note',
        finding: 'not installed',
        consequence: 'kubeling does not need it; you will want it to talk to a cluster',
      },
    ];
  },
};
