import { type PublicRoutesOptions, publicRoutes } from './public-routes.ts';

interface PageRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

interface PageAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The public routes as a front serves them: what a caller has already is not sent again. */
export function publicPages(options: PublicRoutesOptions): {
  page(request: PageRequest): PageAnswer | undefined;
} {
  const routes = publicRoutes(options);
  return {
    page({ path, query, accept, ifNoneMatch }) {
      const found = routes(path, accept);
      if (found === undefined) return undefined;
      const hash = path.startsWith('/openapi/v3/') ? query.get('hash') : null;
      if (hash !== null && hash !== found.etag) return moved(`${path}?hash=${found.etag}`);
      const headers = { ETag: `"${found.etag}"`, Vary: 'Accept', ...(hash === null ? {} : forGood) };
      if (isKnown(ifNoneMatch, found.etag)) return { status: 304, headers, body: '' };
      return { status: 200, headers: { 'Content-Type': found.contentType, ...headers }, body: found.body };
    },
  };
}

/** At an address with its mark in it a document never changes. */
const forGood = { 'Cache-Control': 'public, immutable' };

function moved(to: string): PageAnswer {
  return { status: 301, headers: { Location: to }, body: '' };
}

function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  const known = (ifNoneMatch ?? '').split(',').map((each) => each.trim().replace(/^W\//, ''));
  return known.includes('*') || known.includes(`"${etag}"`);
}
