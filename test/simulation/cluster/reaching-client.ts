import { type ApiClient, type ApiObject, isApiCode, type Reachability } from '../../../src/api/index.ts';

/** Wraps an API client and records whether the server is reachable, as the HTTP client does. */
export function reachingClient(client: ApiClient, reach: Reachability): ApiClient {
  const note = <T>(asked: Promise<T>) => noted(asked, reach);
  return {
    get: <T extends ApiObject>(...args: Parameters<ApiClient['get']>) => note(client.get<T>(...args)),
    list: <T extends ApiObject>(...args: Parameters<ApiClient['list']>) => note(client.list<T>(...args)),
    create: <T extends ApiObject>(...args: Parameters<ApiClient['create']>) =>
      note(client.create<T>(...args)),
    post: <T extends ApiObject>(...args: Parameters<ApiClient['post']>) => note(client.post<T>(...args)),
    update: <T extends ApiObject>(...args: Parameters<ApiClient['update']>) =>
      note(client.update<T>(...args)),
    patch: <T extends ApiObject>(...args: Parameters<ApiClient['patch']>) => note(client.patch<T>(...args)),
    delete: (...args) => note(client.delete(...args)),
    async *watch<T extends ApiObject>(...args: Parameters<ApiClient['watch']>) {
      try {
        yield* client.watch<T>(...args);
      } catch (error) {
        failed(error, reach);
        throw error;
      }
    },
    onReturn: (told) => reach.onReturn(told),
  };
}

async function noted<T>(asked: Promise<T>, reach: Reachability): Promise<T> {
  try {
    const response = await asked;
    reach.succeeded();
    return response;
  } catch (error) {
    failed(error, reach);
    throw error;
  }
}

function failed(error: unknown, reach: Reachability): void {
  if (isApiCode(error, 'API_UNAVAILABLE', 'API_DEADLINE', 'API_FAILED')) reach.failed();
  else if (isApiCode(error, 'API_NOT_FOUND', 'API_CONFLICT', 'API_GONE')) reach.succeeded();
}
