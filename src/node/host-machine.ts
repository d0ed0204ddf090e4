import { lookup } from 'node:dns/promises';
import { readFile, statfs } from 'node:fs/promises';
import { networkInterfaces, release } from 'node:os';
import type { LocalAddress, NodeMachine } from './inputs.ts';

/** The machine kubeling runs on. */
export function hostNodeMachine(): NodeMachine {
  return {
    read: (path) => readFile(path, 'utf8').catch(() => undefined),
    addresses: localAddresses,
    // The resolver of the system cannot be called off; whoever asks stops waiting for it.
    lookup: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    kernelRelease: release,
  };
}

/** A machine that may not look at its interfaces is one without addresses. */
function localAddresses(): readonly LocalAddress[] {
  try {
    return Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
      (addresses ?? []).map(({ address }) => ({ interface: name, address })),
    );
  } catch {
    return [];
  }
}

/** Bytes of the file system the path is on, for `MachineCapacity.ephemeralStorage`; undefined if it cannot be told. */
export async function diskBytes(path: string): Promise<number | undefined> {
  return await statfs(path).then(
    ({ blocks, bsize }) => blocks * bsize,
    () => undefined,
  );
}
