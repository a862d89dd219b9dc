/** Types exchanged between the server and researcher pages, by the names of `finecomb.server.researchers.schema`. */
import type {
  Overview,
  Recruitment as SendableRecruitment,
  SignedInResearcher,
  StudyConfig as Described,
  Settings as Sendable,
} from "../lib/schema";

export type {
  UploadResult,
  SignInLink,
  AttemptResult,
  CalibrationPage,
  CellPayRow,
  DesignCellRow,
  DesignPage,
  AuditEntry,
  DocumentList,
  DocumentPage,
  DocumentRow,
  Exclusion,
  Export,
  Figure,
  Links,
  Overview,
  AnnotatorRow,
  PersonalLinkResponse,
  AnnotatorPage,
  StudyProgress,
  ProtocolRow,
  AnnotationBars,
  AnnotatorMark,
  Recruit,
  Recruiting,
  ResearcherRow,
  FailedText,
  ModelChoice,
  PlacedQuote,
  RunList,
  RunPage,
  RunPreview,
  RunRow,
  QualificationScores,
  SuggestionRow,
  WatchedFigure,
} from "../lib/schema";

export type Me = SignedInResearcher;
export type Role = Me["role"];
export type State = Overview["state"];
export type DocumentFilter = "all" | "unfinished" | "disputed";
/** Settings as received; all fields are present. */
export type Settings = Required<Sendable> & { recruitment: Recruitment };
export type Recruitment = Required<SendableRecruitment>;
export type StudyConfig = Described & { settings: Settings };
