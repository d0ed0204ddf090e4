import type { Node } from '../../src/kinds/index.ts';
import { computeNode, FactReader, type FactSources, initialNode, NodeImages } from '../../src/node/index.ts';

export type LocalNodeDeps = Omit<FactSources, 'images' | 'provider'>;

/**
 * The Node as it would be registered, without any API server: for admission when there is none, or
 * it is unresponsive.
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
    const facts = await this.#facts.read('ask-runtime', signal);
    return computeNode(initialNode(settings), { settings, facts, now: clock.now() }).node;
  }
}
