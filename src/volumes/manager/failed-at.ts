import { describeError, KubelingError } from '../../lib/index.ts';

/** Names the stage of mounting a volume in which the work fails, unless the work has done so itself. */
export async function at<T>(stage: string, name: string, work: Promise<T> | T): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof KubelingError && error.details['stage'] !== undefined) throw error;
    throw failedAt(stage, name, describeError(error), retryAt(error), error);
  }
}

/** With a blank before the colon, as users of events have come to expect. */
export function failedAt(
  stage: string,
  volume: string,
  why: string,
  retryAtMs?: number,
  cause?: unknown,
): KubelingError {
  const details = { stage, retryAtMs };
  return new KubelingError('VOLUME_UNUSABLE', `${stage} for volume "${volume}" : ${why}`, { details, cause });
}

/** When it may be tried again, if whatever failed says so. */
function retryAt(error: unknown): number | undefined {
  const found = error instanceof KubelingError ? error.details['retryAtMs'] : undefined;
  return typeof found === 'number' ? found : undefined;
}
