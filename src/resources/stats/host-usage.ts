import type { MemoryUsage } from './cgroup-usage.ts';
import { fieldsOf } from './text-fields.ts';

export interface InterfaceUsage {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxPackets: number;
  readonly rxErrors: number;
  readonly rxDropped: number;
  readonly txBytes: number;
  readonly txPackets: number;
  readonly txErrors: number;
  readonly txDropped: number;
}

/** What has gone over each interface but the loopback, from the text of a process's `net/dev`. */
export function interfacesIn(text: string): readonly InterfaceUsage[] {
  return [...text.matchAll(/^\s*([^\s:]+):\s*(.*)$/gm)]
    .filter(([, name]) => name !== 'lo')
    .map(([, name = '', rest = '']) => {
      const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0, , , , , ...sent] = rest
        .trim()
        .split(/\s+/)
        .map(Number);
      const [txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] = sent;
      return { name, rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped };
    });
}

/** The interface of the default route, from the text of `net/route`. */
export function defaultInterface(text: string): string | undefined {
  const rows = text.split('\n').map((line) => line.split(/\s+/));
  return rows.find(([, destination, , flags]) => destination === '00000000' && flags !== undefined)?.[0];
}

export interface HostMemory {
  readonly totalBytes: number;
  /** What could be had without swapping, by the kernel's own reckoning; undefined where it does not say. */
  readonly availableBytes: number | undefined;
  readonly swapTotalBytes: number;
  readonly swapUsageBytes: number;
  /** For where no cgroup tells it of the whole machine. */
  readonly usage: MemoryUsage;
}

/** From the text of /proc/meminfo. */
export function hostMemory(text: string): HostMemory {
  const fields = fieldsOf(text);
  const bytes = (name: string) => (fields.get(name) ?? 0) * 1_024;
  const totalBytes = bytes('MemTotal');
  const usageBytes = totalBytes - bytes('MemFree');
  const workingSetBytes = Math.max(usageBytes - bytes('Inactive(file)'), 0);
  return {
    totalBytes,
    availableBytes: fields.has('MemAvailable') ? bytes('MemAvailable') : undefined,
    swapTotalBytes: bytes('SwapTotal'),
    swapUsageBytes: bytes('SwapTotal') - bytes('SwapFree'),
    usage: {
      usageBytes,
      workingSetBytes,
      rssBytes: bytes('AnonPages'),
      pageFaults: 0,
      majorPageFaults: 0,
      availableBytes: totalBytes - workingSetBytes,
    },
  };
}
