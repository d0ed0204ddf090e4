import { errnoOf, KubelingError } from '../errors.ts';
import { type Mount, parseMountinfo } from '../mountinfo.ts';
import type { CgroupHost } from './host.ts';

export const cgroupMagic = { v1: 0x27e0eb, v2: 0x63677270, tmpfs: 0x01021994 } as const;

/**
 * How this machine mounts cgroups: all controllers in one hierarchy (v2), or one hierarchy per
 * controller (v1, some joined), next to which a hybrid machine has a v2 hierarchy without
 * controllers.
 */
export type CgroupLayout =
  | { readonly version: 2; readonly root: string }
  | {
      readonly version: 1;
      /** The mount points by the name of a controller, or of a named hierarchy such as systemd. */
      readonly controllers: ReadonlyMap<string, string>;
      readonly unified: string | undefined;
    };

const treeRoot = '/sys/fs/cgroup';
const neededV1 = ['cpu', 'cpuacct', 'cpuset', 'memory'] as const;

/**
 * Detects the cgroup layout from the mount table. Throws CGROUPS_UNUSABLE when a required
 * controller is missing.
 */
export async function detectCgroupLayout(host: CgroupHost): Promise<CgroupLayout> {
  if ((await fsTypeAt(host, treeRoot)) === cgroupMagic.v2) return { version: 2, root: treeRoot };
  const mounts = parseMountinfo(await host.mountinfo());
  const controllers = await mountedControllers(host, mounts);
  const missing = neededV1.filter((name) => !controllers.has(name));
  if (missing.length > 0) throw unusable(missing, mounts);
  return { version: 1, controllers, unified: await unifiedRoot(host) };
}

/** The root directories of all cgroup hierarchies, each once. */
export function cgroupRoots(layout: CgroupLayout): readonly string[] {
  if (layout.version === 2) return [layout.root];
  const all = [...layout.controllers.values(), ...(layout.unified === undefined ? [] : [layout.unified])];
  return [...new Set(all)].toSorted();
}

function unusable(missing: readonly string[], mounts: readonly Mount[]): KubelingError {
  const found = mounts.filter((mount) => mount.fsType === 'cgroup').map((mount) => mount.mountPoint);
  const mounted = found.length === 0 ? 'none is mounted' : `mounted are ${found.join(', ')}`;
  return new KubelingError(
    'CGROUPS_UNUSABLE',
    `Cannot use the cgroups of this machine as the controllers ${missing.join(', ')} must be mounted: ${mounted}`,
    { details: { missing } },
  );
}

/** A controller may be mounted at several paths: the shortest path is used. */
async function mountedControllers(
  host: CgroupHost,
  mounts: readonly Mount[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const mount of mounts.filter(({ fsType }) => fsType === 'cgroup')) {
    // Whether another file system was mounted over the hierarchy later.
    if ((await fsTypeAt(host, mount.mountPoint)) !== cgroupMagic.v1) continue;
    for (const name of controllerNames(mount)) {
      const before = found.get(name);
      if (before === undefined || mount.mountPoint.length < before.length) found.set(name, mount.mountPoint);
    }
  }
  return found;
}

const plainOptions = new Set(['rw', 'ro', 'xattr', 'clone_children', 'noprefix', 'cpuset_v2_mode', '']);

function controllerNames({ superOptions }: Mount): string[] {
  return superOptions
    .filter((option) => !plainOptions.has(option) && !option.startsWith('release_agent='))
    .map((option) => option.replace(/^name=/, ''));
}

async function unifiedRoot(host: CgroupHost): Promise<string | undefined> {
  const path = `${treeRoot}/unified`;
  return (await fsTypeAt(host, path)) === cgroupMagic.v2 ? path : undefined;
}

async function fsTypeAt(host: CgroupHost, path: string): Promise<number | undefined> {
  try {
    return await host.fsType(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
