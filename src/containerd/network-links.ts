import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError } from '../lib/index.ts';
import type { Run } from './machine.ts';
import type { Removal } from './mounts.ts';

export interface LinkDeps {
  readonly run: Run;
  readonly ip: string | undefined;
  readonly sysDir: string;
}

/** Deletes the bridge and all interfaces attached to it. */
export async function removeBridge(bridge: string, deps: LinkDeps, signal: AbortSignal): Promise<Removal> {
  const links = await bridgeLinks(bridge, deps.sysDir);
  if (links.length === 0) return { removed: [], problems: [] };
  if (deps.ip === undefined) {
    const problem = `Cannot delete the interfaces ${links.join(', ')} as the program ip is missing (package iproute2)`;
    return { removed: [], problems: [problem] };
  }
  const removed: string[] = [];
  const problems: string[] = [];
  for (const link of links) {
    try {
      await deps.run(deps.ip, ['link', 'del', 'dev', link], signal);
      removed.push(link);
    } catch (error) {
      signal.throwIfAborted();
      // An interface that is already deleted is not a problem: deleting one end of a veth pair
      // deletes both, and removing a network namespace deletes its interfaces.
      if (await isLink(link, deps.sysDir)) problems.push(describeError(error));
    }
  }
  return { removed, problems };
}

/**
 * Returns the interfaces attached to a bridge and the bridge itself; empty if the bridge does not
 * exist.
 */
async function bridgeLinks(bridge: string, sysDir: string): Promise<string[]> {
  const ports = await readdir(join(sysDir, 'class/net', bridge, 'brif')).catch(() => undefined);
  return ports === undefined ? [] : [...ports, bridge];
}

async function isLink(name: string, sysDir: string): Promise<boolean> {
  return await stat(join(sysDir, 'class/net', name)).then(
    () => true,
    () => false,
  );
}
