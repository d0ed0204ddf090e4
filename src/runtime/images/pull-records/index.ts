export { type PullEnd, PullRecords, type PullRecordsDeps } from './pull-records.ts';
export { RecordFiles, type RecordFilesDeps } from './record-files.ts';
export type { VerificationPolicy } from './verification-policy.ts';
