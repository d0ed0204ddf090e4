import type { KubeletFlags } from './kubelet-flags.ts';

/** The flags of the node and of this run as they could be written, by their names. None of them holds a secret. */
export function flagTexts(flags: KubeletFlags): Readonly<Record<string, string>> {
  const names = Object.entries(flags).filter(([, value]) => value !== undefined);
  return Object.fromEntries(names.map(([name, value]) => [flagNameOf(name), textOf(value)]));
}

/** Those of our names that are not the flag's. */
const renamed: Readonly<Record<string, string>> = {
  nodeIps: 'node-ip',
  minimumContainerTtlMs: 'minimum-container-ttl-duration',
  maxDeadContainersPerContainer: 'maximum-dead-containers-per-container',
  maxDeadContainers: 'maximum-dead-containers',
  ignoreEvictionInAllocatable: 'experimental-allocatable-ignore-eviction',
};

function flagNameOf(field: string): string {
  // Durations have their unit in our own names only.
  const plain = field.replace(/Ms$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return renamed[field] ?? plain;
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(',');
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .map(([key, part]) => `${key}=${part}`)
    .join(',');
}
