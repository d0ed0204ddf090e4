import { describeError } from '../../../lib/index.ts';
import type { Machine } from '../check.ts';
import { type Check, type CheckTarget, isAtLeast, type Observation, ok } from '../check.ts';

const k3sSocket = '/run/k3s/containerd/containerd.sock';

export const runtimeSocket: Check = {
  name: 'runtime socket',
  observe: async (target, signal) => {
    if (target.runtimeEndpoint !== undefined) {
      return [await queryEndpoint(target.machine, target.runtimeEndpoint, 'fail', signal)];
    }
    const found = await findSockets(target);
    if (found.length === 0) return [await observeNoSocket(target)];
    return await Promise.all(
      found.map((path) => queryEndpoint(target.machine, `unix://${path}`, 'warn', signal)),
    );
  },
};

/**
 * Returns the existing runtime sockets. /var/run is usually a link to /run, so a socket that exists
 * below both is returned only once.
 */
async function findSockets({ machine, dataDirectory }: CheckTarget): Promise<readonly string[]> {
  const { containerdLayout, usualRuntimeSockets } = await import('../../../containerd/index.ts');
  const candidates = [...usualRuntimeSockets, k3sSocket, containerdLayout(dataDirectory).socket];
  const kinds = await Promise.all(candidates.map((path) => machine.kindOf(path)));
  const found = candidates.filter((_, index) => kinds[index] === 'socket');
  return found.filter((path) => !(path.startsWith('/var/run/') && found.includes(path.slice('/var'.length))));
}

async function queryEndpoint(
  machine: Machine,
  endpoint: string,
  otherwise: 'warn' | 'fail',
  signal: AbortSignal,
): Promise<Observation> {
  try {
    const { name, version } = await machine.queryRuntime(endpoint, signal);
    return ok(`${name} ${version} responds at ${endpoint}`);
  } catch (error) {
    return {
      severity: otherwise,
      finding: `${endpoint} does not respond to CRI calls: ${describeError(error)}`,
      consequence: 'kubeling cannot use this runtime',
      advice:
        'check that the runtime runs and its CRI plugin is enabled (disabled_plugins in containerd), or remove the socket',
    };
  }
}

async function observeNoSocket({ machine }: CheckTarget): Promise<Observation> {
  const own = await machine.findCommand('containerd');
  if (own === undefined) {
    return {
      severity: 'fail',
      finding: 'no runtime is listening, and there is no containerd to start',
      consequence: 'no containers can run',
      advice: 'node scripts/setup.mjs installs containerd on Debian; or set --runtime-endpoint',
    };
  }
  return {
    severity: 'note',
    finding: 'no runtime listens on the usual sockets',
    consequence: '"kubeling up" starts a private containerd; "kubeling run" needs a running one',
  };
}

export const runtimePrograms: Check = {
  name: 'runtime programs',
  observe: async ({ machine }, signal) => {
    const version = (name: string) => versionOf(machine, name, signal);
    const [containerd, runc, crun] = await Promise.all([
      version('containerd'),
      version('runc'),
      version('crun'),
    ]);
    const found = Object.entries({ containerd, runc, crun }).filter(([, text]) => text !== undefined);
    return [
      ...(found.length > 0 ? [ok(found.map(([name, text]) => `${name} ${text}`).join(', '))] : []),
      ...observeContainerd(containerd),
      ...(runc === undefined && crun === undefined ? [noLowLevelRuntime] : []),
    ];
  },
};

const noLowLevelRuntime: Observation = {
  severity: 'warn',
  finding: 'neither runc nor crun is on the PATH',
  consequence: 'a private containerd cannot start containers; another runtime may bring its own',
  advice: 'apt-get install runc',
};

function observeContainerd(version: string | undefined): readonly Observation[] {
  if (version === undefined) {
    return [
      {
        severity: 'note',
        finding: 'containerd is not on the PATH',
        consequence: 'kubeling cannot start a private containerd and needs a running runtime',
        advice: 'apt-get install containerd',
      },
    ];
  }
  if (!isAtLeast(version, [1, 6])) {
    return [
      {
        severity: 'fail',
        finding: `containerd ${version} is too old`,
        consequence: 'it does not support CRI v1',
        advice: 'use 1.6 or newer, better 2.x',
      },
    ];
  }
  if (isAtLeast(version, [1, 7])) return [];
  return [
    {
      severity: 'note',
      finding: `containerd ${version} has no CRI events`,
      consequence:
        "kubeling uses containerd's own event service instead and reacts as fast; no change needed",
    },
  ];
}

/** Returns the version that a program prints; undefined if it is not installed. */
async function versionOf(machine: Machine, name: string, signal: AbortSignal): Promise<string | undefined> {
  const path = await machine.findCommand(name);
  if (path === undefined) return undefined;
  const { output } = await machine.run(path, ['--version'], signal);
  return /\bv?(\d{1,9}\.\d\S*)/.exec(output)?.[1] ?? 'of unknown version';
}
