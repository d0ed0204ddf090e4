import { join } from 'node:path';
import type { CgroupHost, CgroupLayout } from '../../lib/index.ts';
import type { PodSubject } from './pod-subjects.ts';

/**
 * Where the cgroups of containers are: the runtime names them after their ids, alone or with words of its own around.
 * What was found stays so for as long as the container runs.
 */
export class ContainerCgroups {
  readonly #host: Pick<CgroupHost, 'subdirectories'>;
  readonly #tree: string;
  #known: ReadonlyMap<string, string> = new Map();

  constructor(host: Pick<CgroupHost, 'subdirectories'>, layout: CgroupLayout) {
    this.#host = host;
    this.#tree = treeOf(layout);
  }

  get size(): number {
    return this.#known.size;
  }

  /** By id, below each tree. Others than these are forgotten. */
  async find(pods: readonly PodSubject[]): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    for (const { cgroup, sandbox, containers } of pods) {
      if (cgroup === '') continue;
      const ids = [...(sandbox === undefined ? [] : [sandbox.id]), ...containers.map(({ id }) => id)];
      const isKnown = ids.every((id) => this.#known.has(id));
      const names = isKnown ? [] : await this.#host.subdirectories(join(this.#tree, cgroup)).catch(() => []);
      for (const id of ids) {
        const name = names.find((each) => each.includes(id));
        const path = this.#known.get(id) ?? (name === undefined ? undefined : join(cgroup, name));
        if (path !== undefined) found.set(id, path);
      }
    }
    this.#known = found;
    return found;
  }
}

/** The tree all cgroups are in. */
export function treeOf(layout: CgroupLayout): string {
  return layout.version === 2 ? layout.root : (layout.controllers.get('memory') ?? '');
}
