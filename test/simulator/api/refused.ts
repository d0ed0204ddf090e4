import { apiError } from '../../../src/api/index.ts';
import { type ApiRequest, describeRequest, StatusError } from '../../../src/local-api/api/index.ts';

/**
 * Converts an API server error to the error an API client throws; returns any other value
 * unchanged.
 */
export function refusedTo(request: ApiRequest, error: unknown): unknown {
  if (!(error instanceof StatusError)) return error;
  const { code, reason, message, details } = error.status;
  const seconds = details?.retryAfterSeconds;
  return apiError({
    what: describeRequest(request),
    status: code,
    apiStatus: { code, reason, message },
    retryAfterMs: seconds === undefined ? undefined : seconds * 1_000,
  });
}

/** Runs the work and throws its API server errors as an API client does. */
export function answered<T>(request: ApiRequest, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw refusedTo(request, error);
  }
}
