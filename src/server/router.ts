/** A request as handlers see it. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

export interface Response {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export interface Route {
  /** Whole segments, compared to the letter; one that ends in a slash takes everything below it too. */
  readonly path: string;
  readonly methods: readonly string[] | 'any';
  answer(request: Request, signal: AbortSignal): Promise<Response> | Response;
}

export function text(status: number, body: string): Response {
  return { status, contentType: 'text/plain; charset=utf-8', body };
}

export function json(value: unknown): Response {
  return { status: 200, contentType: 'application/json', body: JSON.stringify(value) };
}

/** Finds who answers; nobody and the wrong method are answers too. */
export async function dispatch(
  routes: readonly Route[],
  request: Request,
  signal: AbortSignal,
): Promise<Response> {
  const route = routes.find(({ path }) => matches(path, request.path));
  if (route === undefined) return text(404, '404: Page Not Found');
  if (route.methods !== 'any' && !route.methods.includes(request.method)) {
    return text(405, '405: Method Not Allowed');
  }
  return await route.answer(request, signal);
}

function matches(pattern: string, path: string): boolean {
  if (!pattern.endsWith('/')) return path === pattern;
  return path.startsWith(pattern) || path === pattern.slice(0, -1);
}
