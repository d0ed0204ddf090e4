import { isKind, KubelingError } from '../../lib/index.ts';

/** The driver has not done it and will not. */
export function isFinal(error: unknown): boolean {
  return error instanceof KubelingError && error.code === 'CSI_REFUSED';
}

/** Told through what was wrapped around it since. */
export function isAbsent(error: unknown): boolean {
  return codesOf(error).includes('CSI_ABSENT');
}

/** The driver or the API could not be asked. */
export function isAway(error: unknown): boolean {
  return codesOf(error).includes('CSI_ABSENT') || isKind(rootOf(error), 'Unavailable', 'DeadlineExceeded');
}

function codesOf(error: unknown): readonly string[] {
  if (!(error instanceof KubelingError)) return [];
  return [error.code, ...codesOf(error.cause)];
}

function rootOf(error: unknown): unknown {
  return error instanceof KubelingError && error.cause !== undefined ? rootOf(error.cause) : error;
}

/** What the driver answered with; undefined when it was not the driver. */
export function grpcCodeOf(error: unknown): string | undefined {
  const code = error instanceof KubelingError ? error.details['grpcCode'] : undefined;
  return typeof code === 'string' ? code : undefined;
}
