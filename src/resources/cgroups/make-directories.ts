import { type CgroupHost, cgroupRoots, errnoOf } from '../../lib/index.ts';
import type { CgroupPlace } from './write-values.ts';

/**
 * Makes the cgroup in every tree, with those above it. Only ever below a root that is mounted: beside the roots lies a
 * tmpfs, in which a directory of that name would look like a cgroup and be none.
 */
export async function makeDirectories(place: CgroupPlace): Promise<void> {
  const { host, layout, path } = place;
  if (layout.version === 2) return await makeV2(host, layout.root, path);
  await Promise.all(cgroupRoots(layout).map((root) => makeBelow(host, root, path)));
  const cpuset = layout.controllers.get('cpuset');
  if (cpuset !== undefined) await inheritCpuset(host, cpuset, path);
}

/** From the bottom up: in the usual case only the last one is missing. */
async function makeBelow(host: CgroupHost, root: string, path: string): Promise<void> {
  try {
    await host.mkdir(`${root}${path}`);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return;
    if (errnoOf(error) !== 'ENOENT' || parentOf(path) === '') throw error;
    await makeBelow(host, root, parentOf(path));
    await makeBelow(host, root, path);
  }
}

/** A cpuset is born empty, and an empty one lets no process in (ENOSPC): fill it from above. */
async function inheritCpuset(host: CgroupHost, root: string, path: string): Promise<void> {
  if (path === '') return;
  const dir = `${root}${path}`;
  const files = ['cpuset.cpus', 'cpuset.mems'];
  const own = await Promise.all(files.map((file) => host.read(`${dir}/${file}`)));
  const empty = files.filter((_, index) => own[index]?.trim() === '');
  if (empty.length === 0) return;
  await inheritCpuset(host, root, parentOf(path));
  for (const file of empty) {
    const above = (await host.read(`${root}${parentOf(path)}/${file}`)).trim();
    await host.write(`${dir}/${file}`, above);
  }
}

/** From the top down: a controller has to be handed on at each level before the next has it. */
async function makeV2(host: CgroupHost, root: string, path: string): Promise<void> {
  const parts = path.split('/').filter((part) => part !== '');
  let dir = root;
  for (const part of parts) {
    await handOnControllers(host, dir);
    dir = `${dir}/${part}`;
    await host.mkdir(dir).catch((error: unknown) => {
      if (errnoOf(error) !== 'EEXIST') throw error;
    });
  }
}

async function handOnControllers(host: CgroupHost, dir: string): Promise<void> {
  const [there, handedOn] = await Promise.all([
    readWords(host, `${dir}/cgroup.controllers`),
    readWords(host, `${dir}/cgroup.subtree_control`),
  ]);
  const missing = there.filter((name) => !handedOn.includes(name));
  if (missing.length === 0) return;
  const file = `${dir}/cgroup.subtree_control`;
  try {
    await host.write(file, missing.map((name) => `+${name}`).join(' '));
  } catch {
    // One that cannot be handed on must not keep the others back; what pods need is checked by whoever looks.
    for (const name of missing) await host.write(file, `+${name}`).catch(() => undefined);
  }
}

export async function readWords(host: CgroupHost, file: string): Promise<string[]> {
  return (await host.read(file)).split(/\s+/).filter((word) => word !== '');
}

/** Empty for the root. */
function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}
