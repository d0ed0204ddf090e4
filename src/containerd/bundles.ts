import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readJsonIfValid } from '../lib/index.ts';
import { cgroupOf } from './cgroups.ts';
import type { Layout } from './layout.ts';

/** A container that this containerd has, or had when it was last heard of. */
export interface Bundle {
  readonly namespace: string;
  readonly id: string;
  /** Absolute within the cgroup tree; its last part always names the container. */
  readonly cgroup: string;
}

/** Found in the state directory, so it works with containerd dead. Also names CRI's containers without a task. */
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

/** The spec's own cgroup, unless it is not plainly this container's: removing another's would be worse than leaving one. */
function safeCgroup(spec: unknown, namespace: string, id: string): string {
  const usual = `/${namespace}/${id}`;
  const path = (spec as { linux?: { cgroupsPath?: unknown } } | undefined)?.linux?.cgroupsPath;
  if (typeof path !== 'string' || path === '') return usual;
  const cgroup = cgroupOf(path);
  const last = cgroup.slice(cgroup.lastIndexOf('/') + 1);
  return last === id || last.endsWith(`-${id}.scope`) ? cgroup : usual;
}

/** The name of the socket of a shim: a hash, as all shims of the machine keep theirs in one directory. */
export function shimSocketName(layout: Layout, { namespace, id }: Bundle): string {
  return createHash('sha256')
    .update(join(layout.socket, namespace, id))
    .digest('hex');
}

async function names(dir: string): Promise<readonly string[]> {
  return await readdir(dir).catch(() => []);
}
