import type { Machine } from '../check.ts';
import { type Check, type Observation, ok } from '../check.ts';

const pluginDirectories = ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'];
const neededPlugins = ['bridge', 'host-local', 'loopback', 'portmap'];

export const cniPlugins: Check = {
  name: 'cni plugins',
  observe: async ({ machine }) => {
    const lists = await Promise.all(pluginDirectories.map((path) => machine.list(path)));
    const found = pluginDirectories.map((path, index) => ({ path, names: lists[index] ?? [] }));
    const best = found.find(({ names }) => neededPlugins.every((name) => names.includes(name)));
    if (best !== undefined) return [ok(`${best.names.length} in ${best.path}`)];
    const any = found.flatMap(({ names }) => names);
    const missing = neededPlugins.filter((name) => !any.includes(name));
    return [
      {
        severity: 'warn',
        finding: missing.length > 0 ? `missing: ${missing.join(', ')}` : 'in several directories',
        consequence: 'the pod network of "kubeling up" cannot be created',
        advice: 'apt-get install containernetworking-plugins; a cluster installs its own plugins',
      },
    ];
  },
};

const configDirectory = '/etc/cni/net.d';

export const cniConfiguration: Check = {
  name: 'cni config',
  observe: async ({ machine }) => {
    const files = (await machine.list(configDirectory)) ?? [];
    const used = files.filter((name) => /\.(conf|conflist|json)$/.test(name)).sort();
    if (used.length > 0) return [ok(`${configDirectory}/${used[0]}`)];
    return [
      {
        severity: 'note',
        finding: `none in ${configDirectory}`,
        consequence: '"kubeling up" creates its own; another runtime has no pod network until there is one',
        advice: 'in a cluster its network add-on writes it; no action needed',
      },
    ];
  },
};

export const packetFilter: Check = {
  name: 'packet filter',
  observe: async ({ machine }, signal) => {
    const iptables = await machine.findCommand('iptables');
    const nft = (await machine.findCommand('nft')) === undefined ? 'no nft' : 'nft';
    if (iptables !== undefined) {
      const { output } = await machine.run(iptables, ['--version'], signal);
      return [ok(`${output.trim().split('\n')[0] ?? 'iptables'}; ${nft}`)];
    }
    return [
      {
        severity: 'warn',
        finding: `no iptables, ${nft}`,
        consequence: 'pods of the bridge network cannot reach other networks, and hostPort does not work',
        advice: 'apt-get install iptables',
      },
    ];
  },
};

export const ipTool: Check = {
  name: 'iproute2',
  observe: async ({ machine }) => {
    const path = await machine.findCommand('ip');
    if (path !== undefined) return [ok(path)];
    return [
      {
        severity: 'warn',
        finding: 'the command ip is missing',
        consequence: 'bridges and network namespaces cannot be cleaned up',
        advice: 'apt-get install iproute2',
      },
    ];
  },
};

const ports: readonly { readonly port: number; readonly use: string }[] = [
  { port: 10250, use: 'kubelet API' },
  { port: 10248, use: 'health' },
  { port: 10255, use: 'read-only API, if enabled' },
  { port: 6443, use: 'embedded API server of "kubeling up"' },
];

export const portsCheck: Check = {
  name: 'ports',
  observe: async ({ machine }) => {
    const usedPorts = await listeningPorts(machine);
    const busy = ports.filter(({ port }) => usedPorts.has(port));
    if (busy.length === 0) return [ok(`${ports.map(({ port }) => port).join(', ')} are free`)];
    return busy.map(observeBusy);
  },
};

function observeBusy({ port, use }: { readonly port: number; readonly use: string }): Observation {
  return {
    severity: 'warn',
    finding: `port ${port} (${use}) is in use`,
    consequence: 'kubeling cannot listen there; another kubelet, or kubeling itself, may be running',
    advice: `find the process with: ss -ltnp 'sport = :${port}'`,
  };
}

const listening = '0A';

/**
 * Parses the local ports with a listener from /proc/net/tcp and tcp6: "sl local_address rem_address
 * st …", all hexadecimal.
 */
async function listeningPorts(machine: Machine): Promise<ReadonlySet<number>> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map((path) => machine.readText(path)));
  const rows = tables.flatMap((table) => (table ?? '').split('\n').slice(1));
  return new Set(
    rows
      .map((row) => row.trim().split(/\s+/))
      .filter((fields) => fields[3] === listening)
      .map((fields) => Number.parseInt(fields[1]?.split(':')[1] ?? '', 16)),
  );
}
