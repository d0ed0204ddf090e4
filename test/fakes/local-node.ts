import type { Node } from '../../src/kinds/index.ts';
import { computeNode, FactReader, type FactSources, initialNode, NodeImages } from '../../src/node/index.ts';

export type LocalNodeDeps = Omit<FactSources, 'images' | 'provider'>;

/**
 * Builds the Node object as the kubelet would register it: for admission while no API server is
 * configured or reachable.
 */
export class LocalNode {
  readonly #deps: LocalNodeDeps;
  readonly #facts: FactReader;

  constructor(deps: LocalNodeDeps) {
    this.#deps = deps;
    this.#facts = new FactReader({ ...deps, images: new NodeImages(deps) });
  }

  async build(signal: AbortSignal): Promise<Node> {
    const { settings, clock } = this.#deps;
    const facts = await this.#facts.read('query-runtime', signal);
    return computeNode(initialNode(settings), { settings, facts, now: clock.now() }).node;
  }
}
