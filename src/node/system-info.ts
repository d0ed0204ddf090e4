import { lookup } from 'node:dns/promises';
import { readFile, statfs } from 'node:fs/promises';
import { networkInterfaces, release } from 'node:os';
import type { LocalAddress, NodeMachineInfo } from './inputs.ts';

/** The identity of the machine. Unknown fields are empty. */
export interface SystemInfo {
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  readonly osImage: string;
}

const machineIdFiles = ['/etc/machine-id', '/var/lib/dbus/machine-id'];
/** The UUID of the machine: from DMI, else from the device tree, else from the machine ID. */
const systemUuidFiles = [
  '/sys/class/dmi/id/product_uuid',
  '/proc/device-tree/system-id',
  '/proc/device-tree/vm,uuid',
  '/etc/machine-id',
];
const osReleaseFiles = ['/etc/os-release', '/usr/lib/os-release'];

export async function readSystemInfo(machine: NodeMachineInfo): Promise<SystemInfo> {
  const [machineId, systemUuid, bootId, osRelease] = await Promise.all([
    firstText(machine, machineIdFiles),
    firstText(machine, systemUuidFiles),
    firstText(machine, ['/proc/sys/kernel/random/boot_id']),
    firstText(machine, osReleaseFiles),
  ]);
  return {
    machineId,
    systemUuid,
    bootId,
    kernelVersion: machine.kernelRelease(),
    osImage: prettyName(osRelease),
  };
}

/** Values of the device tree end with a zero byte. */
async function firstText(machine: NodeMachineInfo, paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    const text = (await machine.read(path))?.replaceAll('\0', '').trim();
    if (text !== undefined && text !== '') return text;
  }
  return '';
}

function prettyName(osRelease: string): string {
  const value = /^PRETTY_NAME=(.*)$/m.exec(osRelease)?.[1]?.trim() ?? '';
  const quoted = /^(["'])(.*)\1$/.exec(value)?.[2];
  return (quoted ?? value).replace(/\\(["'$`\\])/g, '$1') || 'Linux';
}

/** Reads the system information of this machine. */
export function hostNodeMachine(): NodeMachineInfo {
  return {
    read: (path) => readFile(path, 'utf8').catch(() => undefined),
    addresses: localAddresses,
    // A DNS lookup cannot be cancelled; the caller stops waiting for it.
    lookup: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    kernelRelease: release,
  };
}

/** Without permission to list the network interfaces there are no addresses. */
function localAddresses(): readonly LocalAddress[] {
  try {
    return Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
      (addresses ?? []).map(({ address }) => ({ interface: name, address })),
    );
  } catch {
    return [];
  }
}

/**
 * The size of the path's file system, for `MachineCapacity.ephemeralStorage`; undefined if unknown.
 */
export async function diskBytes(path: string): Promise<number | undefined> {
  return await statfs(path).then(
    ({ blocks, bsize }) => blocks * bsize,
    () => undefined,
  );
}

/** Go's name of a processor architecture, as used in node labels. */
export function goArchitecture(nodeArchitecture: string): string {
  const names: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };
  return names[nodeArchitecture] ?? nodeArchitecture;
}
