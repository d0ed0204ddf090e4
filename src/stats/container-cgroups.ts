import { join } from 'node:path';
import type { CgroupHost, CgroupLayout } from '../lib/index.ts';
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
      let names: readonly string[] | undefined;
      for (const id of sandbox === undefined ? idsOf(containers) : [sandbox.id, ...idsOf(containers)]) {
        const known = this.#known.get(id);
        if (known === undefined) names ??= await this.#namesIn(cgroup);
        const name = known === undefined ? names?.find((each) => each.includes(id)) : undefined;
        const path = known ?? (name === undefined ? undefined : join(cgroup, name));
        if (path !== undefined) found.set(id, path);
      }
    }
    this.#known = found;
    return found;
  }

  async #namesIn(cgroup: string): Promise<readonly string[]> {
    return await this.#host.subdirectories(join(this.#tree, cgroup)).catch(() => []);
  }
}

function idsOf(containers: PodSubject['containers']): readonly string[] {
  return containers.map(({ id }) => id);
}

/** The tree all cgroups are in. */
export function treeOf(layout: CgroupLayout): string {
  return layout.version === 2 ? layout.root : (layout.controllers.get('memory') ?? '');
}
