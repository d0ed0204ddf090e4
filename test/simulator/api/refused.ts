import { apiError } from '../../../src/api/index.ts';
import { type ApiRequest, describeRequest, StatusError } from '../../../src/local-api/api/index.ts';

/** Converts an API error to the client's error; any other value is returned unchanged. */
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

/** Runs the work; an API error is thrown as a client throws it. */
export function answered<T>(request: ApiRequest, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw refusedTo(request, error);
  }
}
