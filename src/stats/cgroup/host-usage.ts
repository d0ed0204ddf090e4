import type { MemoryUsage } from './cgroup-usage.ts';
import { digitsEnd, fieldsOf, numberAt } from './cgroup-usage.ts';

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

/**
 * Matches loopback and container interfaces. They are not reported for the node, because their
 * traffic is reported for the containers.
 */
const inward = /^(?:lo$|veth|docker|nerdctl)/;

/**
 * Parses `net/dev` of a process: usage of the main interface and of the other external interfaces.
 */
export function interfacesIn(text: string, main?: string): readonly InterfaceUsage[] {
  const all: InterfaceUsage[] = [];
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf('\n', start);
    const end = found < 0 ? text.length : found;
    const colon = text.indexOf(':', start);
    // Lines without a colon are headings of the table.
    if (colon >= 0 && colon < end) {
      const name = text.slice(start, colon).trim();
      if (name === main || !inward.test(name)) all.push(interfaceOf(name, text, colon + 1));
    }
    start = end + 1;
  }
  return all;
}

function interfaceOf(name: string, text: string, start: number): InterfaceUsage {
  const counts = countsAt(text, start);
  const of = (index: number) => counts[index] ?? 0;
  return {
    name,
    rxBytes: of(0),
    rxPackets: of(1),
    rxErrors: of(2),
    rxDropped: of(3),
    txBytes: of(8),
    txPackets: of(9),
    txErrors: of(10),
    txDropped: of(11),
  };
}

/** Parses numbers separated by blanks, up to the first other text. */
function countsAt(text: string, start: number): readonly number[] {
  const counts: number[] = [];
  for (let at = start; ; at = digitsEnd(text, at)) {
    while (text.charCodeAt(at) === blank) at++;
    const count = numberAt(text, at);
    if (count === undefined) return counts;
    counts.push(count);
  }
}

const blank = 32;

/** Parses `net/route`; returns the interface of the default route. */
export function defaultInterface(text: string): string | undefined {
  const rows = text.split('\n').map((line) => line.split(/\s+/));
  return rows.find(([, destination, , flags]) => destination === '00000000' && flags !== undefined)?.[0];
}

export interface HostMemory {
  readonly totalBytes: number;
  /** MemAvailable of the kernel; undefined when the kernel does not report it. */
  readonly availableBytes: number | undefined;
  readonly swapTotalBytes: number;
  readonly swapUsageBytes: number;
  /** Memory usage of the machine, used when no cgroup reports it. */
  readonly usage: MemoryUsage;
}

/** Parses /proc/meminfo. */
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
