import type { ApiClient } from '../src/api/index.ts';

/**
 * Wraps an API client and copies every response and watch event, so that client and server share no
 * objects, as if there were a network between them.
 */
export function copyingClient(client: ApiClient): ApiClient {
  const copied = async <T>(response: Promise<T>): Promise<T> => copyOf(await response);
  return {
    get: (ref, options, signal) => copied(client.get(ref, options, signal)),
    list: (query, signal) => copied(client.list(query, signal)),
    async *watch(query, signal) {
      for await (const event of client.watch(query, signal)) yield copyOf(event) as never;
    },
    create: (at, object, signal) => copied(client.create(at, object, signal)),
    post: (ref, object, signal) => copied(client.post(ref, object, signal)),
    update: (ref, object, signal) => copied(client.update(ref, object, signal)),
    patch: (ref, patch, signal) => copied(client.patch(ref, patch, signal)),
    delete: (ref, options, signal) => client.delete(ref, options, signal),
  };
}

function copyOf<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
