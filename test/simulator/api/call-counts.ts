import { type ApiRequest, type ApiVerb, resourceWithSubresource } from '../../../src/local-api/api/index.ts';

export interface CallQuery {
  readonly verb?: ApiVerb;
  /** The resource, optionally with a subresource, such as `pods` or `pods/status`. */
  readonly target?: string;
  readonly user?: string;
}

interface Count extends Required<CallQuery> {
  readonly calls: number;
}

/** Counts API calls by verb, target and user, including rejected ones. */
export class CallCounts {
  readonly #counts = new Map<string, Count>();

  add(request: ApiRequest): void {
    const { verb, user } = request;
    const target = resourceWithSubresource(request);
    const key = `${verb} ${target} ${user.name}`;
    this.#counts.set(key, { verb, target, user: user.name, calls: (this.#counts.get(key)?.calls ?? 0) + 1 });
  }

  of({ verb, target, user }: CallQuery = {}): number {
    return [...this.#counts.values()]
      .filter((count) => verb === undefined || count.verb === verb)
      .filter((count) => target === undefined || count.target === target)
      .filter((count) => user === undefined || count.user === user)
      .reduce((sum, { calls }) => sum + calls, 0);
  }

  /** The number of calls by verb and target, for example `patch pods/status`. */
  table(): Readonly<Record<string, number>> {
    const table: Record<string, number> = {};
    for (const { verb, target, calls } of this.#counts.values()) {
      const name = `${verb} ${target}`;
      table[name] = (table[name] ?? 0) + calls;
    }
    return table;
  }

  reset(): void {
    this.#counts.clear();
  }
}
