import { type ErrorCode, KubelingError } from '../../lib/index.ts';

/** The fields of an error response that kubeling uses. */
export interface ApiStatus {
  readonly message?: string | undefined;
  readonly reason?: string | undefined;
  readonly code?: number | undefined;
  readonly details?: { readonly retryAfterSeconds?: number | undefined } | undefined;
}

export interface ApiRefusal {
  /** The request, for example "patch pods/web/status". */
  readonly what: string;
  /** The HTTP status. */
  readonly status: number;
  readonly apiStatus: ApiStatus;
  /** The delay the server requests before a retry, if any. */
  readonly retryAfterMs?: number | undefined;
}

const codes: Readonly<Record<number, ErrorCode>> = {
  400: 'API_INVALID',
  401: 'API_UNAUTHORIZED',
  403: 'API_FORBIDDEN',
  404: 'API_NOT_FOUND',
  405: 'API_UNSUPPORTED',
  406: 'API_UNSUPPORTED',
  409: 'API_CONFLICT',
  410: 'API_GONE',
  415: 'API_UNSUPPORTED',
  422: 'API_INVALID',
  429: 'API_TOO_MANY',
};

/**
 * Creates the error for an unexpected response; its details have `status`, `reason` and
 * `retryAfterMs`.
 */
export function apiError({ what, status, apiStatus, retryAfterMs }: ApiRefusal): KubelingError {
  const code = codes[status] ?? (status >= 500 ? 'API_FAILED' : 'API_INVALID');
  const { message = `HTTP status ${status}`, reason } = apiStatus;
  return new KubelingError(code, `Cannot ${what}: ${message}`, { details: { status, reason, retryAfterMs } });
}

export function isApiCode(error: unknown, ...codes: readonly ErrorCode[]): boolean {
  return error instanceof KubelingError && codes.includes(error.code);
}
