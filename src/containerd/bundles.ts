import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readJsonIfValid } from '../lib/index.ts';
import { cgroupOf } from './cgroups.ts';
import type { Layout } from './layout.ts';

/** A container of this containerd, from its state directory. */
export interface Bundle {
  readonly namespace: string;
  readonly id: string;
  /** The absolute path in the cgroup tree; its last part is the container's ID. */
  readonly cgroup: string;
}

/**
 * Lists the containers from the state directory, so it works without a running containerd. Includes
 * CRI containers without a task.
 */
export async function listBundles(layout: Layout): Promise<readonly Bundle[]> {
  const bundles: Bundle[] = [];
  const tasks = join(layout.state, 'io.containerd.runtime.v2.task');
  for (const namespace of await names(tasks)) {
    for (const id of await names(join(tasks, namespace))) {
      const spec = await readJsonIfValid(join(tasks, namespace, id, 'config.json'));
      bundles.push({ namespace, id, cgroup: safeCgroup(spec, namespace, id) });
    }
  }
  const known = new Set(bundles.map((bundle) => bundle.id));
  for (const kind of ['containers', 'sandboxes']) {
    for (const id of await names(join(layout.root, 'io.containerd.grpc.v1.cri', kind))) {
      if (!known.has(id)) bundles.push({ namespace: 'k8s.io', id, cgroup: `/k8s.io/${id}` });
    }
  }
  return bundles;
}

/**
 * Returns the cgroup of the runtime spec only if its name shows that it belongs to this container:
 * removing a foreign cgroup is worse than leaving an old one.
 */
function safeCgroup(spec: unknown, namespace: string, id: string): string {
  const usual = `/${namespace}/${id}`;
  const path = (spec as { linux?: { cgroupsPath?: unknown } } | undefined)?.linux?.cgroupsPath;
  if (typeof path !== 'string' || path === '') return usual;
  const cgroup = cgroupOf(path);
  const last = cgroup.slice(cgroup.lastIndexOf('/') + 1);
  return last === id || last.endsWith(`-${id}.scope`) ? cgroup : usual;
}

/**
 * Returns the socket name of a shim: a hash, because the shims of all containerds on the machine
 * share one directory.
 */
export function shimSocketName(layout: Layout, { namespace, id }: Bundle): string {
  return createHash('sha256')
    .update(join(layout.socket, namespace, id))
    .digest('hex');
}

async function names(dir: string): Promise<readonly string[]> {
  return await readdir(dir).catch(() => []);
}
